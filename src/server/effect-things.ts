// Effects as schemas: what the ledger's answers hold.
import { Type } from "typebox";
import { CONTENT_STATES } from "../storage/effect-list.ts";
import { EFFECT_KINDS, EFFECT_STATES } from "../storage/effects.ts";
import { Act, BriefEffect, count, Many, OneOf, OrNull, text, thing, Time } from "./things.ts";

const effectFacts = {
  id: text("A UUID that sorts by time. Peers that know idempotency keys were given it."),
  kind: OneOf(EFFECT_KINDS, "call is one whose answer somebody waited for."),
  state: OneOf(EFFECT_STATES, "A call that was begun by somebody who is gone is uncertain."),
  tenant: OrNull(Type.String()),
  target: text("To whom: an address, a URL, a meter."),
  dedupe: text("Unique for the tenant and kind, for ever."),
  amount: OrNull(Type.Integer()),
  currency: OrNull(Type.String()),
  destination: text("Whose limits hold."),
  event: OrNull(text("Our id of the event that decided it.")),
  event_id: OrNull(text("The sender's id of that event.")),
  handler: OrNull(Type.String()),
  job: OrNull(Type.Integer({ description: "The job that carries it out." })),
  attempt: count("Calls that were begun."),
  uncertainties: count("Those of them that ended without anybody knowing how."),
  on_uncertain: OneOf(["retry", "hold"], "What follows where nobody knows whether a call was heard."),
  after: OrNull(text("The effect that must be done first.")),
  suppressed_by: OrNull(text("The effect that was intended before with the same key.")),
  planned_at: Time,
  begun_at: OrNull(Time),
  ended_at: OrNull(Time),
  reason: OrNull(text("Why it is where it is.")),
  feedback: OrNull(text("What was heard of it afterwards: delivered, bounced, complained.")),
  feedback_at: OrNull(Time),
  waits_for: OrNull(text("What it waits for, in words.")),
  next_at: OrNull(Time),
  template: OrNull(text("Of a mail.")),
  locale: OrNull(text("Of a mail.")),
  accepted_as: OrNull(text("What the mail server said when it took the mail.")),
  content: OneOf(
    CONTENT_STATES,
    "Whether what it held is there: sealed under a key that the server lacks, altered since it was sealed, or removed by retention (pruned) or by an operator (erased).",
  ),
  content_removed_at: OrNull(Time),
};

export const Effect = thing("Effect", effectFacts);

export const EffectDetail = thing("EffectDetail", {
  ...effectFacts,
  receipt: Type.Unknown({
    description: "What the peer gave for it; null for kind call, whose answer may hold secrets.",
  }),
  attempts: Many(
    thing("EffectAttempt", {
      number: Type.Integer(),
      result: OrNull(OneOf(["done", "again", "failed", "uncertain", "blocked"])),
      repeats: Type.Boolean({
        description: "True where an earlier call may have been the one that counted.",
      }),
      error_class: OrNull(Type.String()),
      error_message: OrNull(Type.String()),
      answer: Type.Unknown({ description: "What the peer said, where a program can read it." }),
      started_at: Time,
      ended_at: OrNull(Time),
      duration_ms: OrNull(Type.Number()),
    }),
  ),
  followers: Many(BriefEffect),
  acts: Many(Act),
});
