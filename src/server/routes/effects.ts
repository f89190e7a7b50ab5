// /api/v1/effects: what was done to the outside world, and deciding what nobody else can.
import { Type } from "typebox";
import { noEffect } from "../../operate/effects.ts";
import { RESOLUTIONS } from "../../storage/effect-resolve.ts";
import { EFFECT_KINDS, EFFECT_STATES } from "../../storage/effects.ts";
import { requireTenant } from "../caller.ts";
import { PAGE, REASON, span, Text, timesOf } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { Effect, EffectDetail } from "../effect-things.ts";
import { Names, OneOf, OrNull, pageOf, text, thing } from "../things.ts";

export const effectRoutes: readonly Route[] = [
  route({
    id: "listEffects",
    method: "GET",
    path: "/effects",
    scope: "read",
    reach: "tenants",
    text: "Lists effects, newest first.",
    query: Type.Object({
      to: Type.Optional(Text("Only mails to this address, in whatever case.")),
      kind: Type.Optional(OneOf(EFFECT_KINDS, "Only of this kind.")),
      state: Type.Optional(OneOf(EFFECT_STATES, "Only in this state.")),
      tenant: Type.Optional(Text("Only of this tenant.")),
      target: Type.Optional(Text("Only with exactly this target.")),
      event: Type.Optional(Text("Only decided by this event, by our id or by the sender's.")),
      dedupe: Type.Optional(Text("Only with this dedupe key.")),
      destination: Type.Optional(Text("Only to this destination.")),
      ...span("Intended"),
      ...PAGE,
    }),
    answer: pageOf(Effect),
    run({ query: { limit, cursor, since, until, ...filter }, caller }, { effects }) {
      requireTenant(caller, filter.tenant);
      const { tenants } = caller;
      return effects.list(
        { ...filter, ...timesOf({ since, until }), ...(tenants && { tenants }) },
        { limit, cursor },
      );
    },
  }),
  route({
    id: "getEffect",
    method: "GET",
    path: "/effects/{id}",
    scope: "read",
    reach: "tenants",
    text: "One effect with its receipt, every call, what waits for it, and what was done to it.",
    answer: EffectDetail,
    async run({ params, caller }, { effects }) {
      const effect = await effects.show(params.id!, caller);
      if (!effect) throw noEffect();
      return effect;
    },
  }),
  route({
    id: "resolveEffect",
    method: "POST",
    path: "/effects/{id}/resolve",
    scope: "operate",
    reach: "tenants",
    text: "Decides an effect of which nobody knows whether it happened.",
    body: Type.Object({
      as: OneOf(
        RESOLUTIONS,
        "done: it happened. failed: it did not, and shall not. again: it is tried again, as a repetition.",
      ),
      ...REASON,
    }),
    refuses: ["effect_settled", "effect_in_progress", "effect_content_removed"],
    answer: thing("EffectResolution", {
      id: Type.String(),
      state: OneOf(EFFECT_STATES),
      job: OrNull(Type.Integer({ description: "The job that tries it again." })),
    }),
    run: ({ params, body, mandate, caller }, { effects }) =>
      effects.resolve(params.id!, body.as, mandate, caller),
  }),
  route({
    id: "cancelEffect",
    method: "POST",
    path: "/effects/{id}/cancel",
    scope: "operate",
    reach: "tenants",
    text: "Cancels an effect that has not begun, with those that wait for it. Its dedupe key stays used.",
    body: Type.Object(REASON),
    refuses: ["effect_settled", "effect_in_progress"],
    answer: thing("EffectCancellation", {
      id: Type.String(),
      state: text("Always cancelled."),
      followers: Names,
    }),
    run: ({ params, mandate, caller }, { effects }) => effects.cancel(params.id!, mandate, caller),
  }),
];
