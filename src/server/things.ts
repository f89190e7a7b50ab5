// The things of the API as schemas: what each answer holds. Routes are checked against them by the compiler and by tests.
import { Type, type TObject, type TProperties, type TSchema } from "typebox";
import { EFFECT_KINDS, EFFECT_STATES } from "../storage/effects.ts";
import { ATTEMPT_OUTCOMES, DEATHS, EVENT_STATUSES, JOB_KINDS, JOB_STATES } from "../storage/states.ts";

/** A time: a Date in code, ISO 8601 in JSON. */
export const Time = Type.Unsafe<Date | string>({ type: "string", format: "date-time" });

/** A value, or null. */
export const OrNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** One of some words. */
export const OneOf = <const T extends readonly string[]>(words: T, text?: string) =>
  Type.Unsafe<T[number]>({ type: "string", enum: [...words], ...(text ? { description: text } : {}) });

export const text = (description: string) => Type.String({ description });
export const count = (description: string) => Type.Integer({ minimum: 0, description });

/** A thing with a name of its own in the document. */
export function thing<T extends TProperties>(title: string, properties: T): TObject<T> {
  return Type.Object(properties, { title, additionalProperties: false });
}

/** One page of a list. */
export const pageOf = <T extends TSchema>(item: T) =>
  Type.Object(
    {
      items: Type.Unsafe<readonly Type.Static<T>[]>(Type.Array(item)),
      cursor: Type.Optional(
        text(
          "Where the next page begins; absent on the last. A page may hold fewer items than the limit, or none, and still not be the last: on large tables one request looks through 100,000 rows at the most.",
        ),
      ),
    },
    { additionalProperties: false },
  );

/** A list that is always whole. */
export const listOf = <T extends TSchema>(item: T) =>
  Type.Object(
    { items: Type.Unsafe<readonly Type.Static<T>[]>(Type.Array(item)) },
    { additionalProperties: false },
  );

/** A list within a thing. */
export const Many = <T extends TSchema>(item: T) => Type.Unsafe<readonly Type.Static<T>[]>(Type.Array(item));

export const Names = Many(Type.String());

export const Ref = thing("Ref", {
  kind: text("What it is, such as payment_intent."),
  id: text("The business id itself."),
});

export const Attempt = thing("Attempt", {
  number: Type.Integer(),
  outcome: OneOf(ATTEMPT_OUTCOMES),
  error_class: OrNull(Type.String()),
  error_message: OrNull(Type.String()),
  error_stack: OrNull(Type.String()),
  started_at: OrNull(Time),
  ended_at: Time,
  duration_ms: OrNull(Type.Number()),
  worker: OrNull(Type.String()),
  trace_id: OrNull(Type.String()),
});

/** What was done to something, by whom and why. */
export const Act = thing("Act", {
  at: Time,
  actor: Type.String(),
  action: Type.String(),
  reason: OrNull(Type.String()),
});

/** An effect in a few words, where it is told beside something else. */
export const BriefEffect = thing("BriefEffect", {
  id: Type.String(),
  kind: OneOf(EFFECT_KINDS),
  state: OneOf(EFFECT_STATES),
  target: Type.String(),
});

const Outcome = thing("Outcome", {
  status: OneOf(EVENT_STATUSES),
  error_message: OrNull(Type.String()),
  processed_at: OrNull(Time),
  billing_id: OrNull(Type.String()),
  office_id: OrNull(Type.String()),
});

const eventFacts = {
  id: text("Our id, a UUID that sorts by time."),
  source: Type.String(),
  account: text("The sender's account; empty where there is only one."),
  livemode: Type.Boolean(),
  event_id: text("The sender's id."),
  type: Type.String(),
  tenant: OrNull(Type.String()),
  refs: Many(Ref),
  status: OneOf(EVENT_STATUSES),
  origin: OneOf(["webhook", "reconcile", "api", "test"]),
  received_at: Time,
  occurred_at: OrNull(Time),
  processed_at: OrNull(Time),
  error_message: OrNull(Type.String()),
};

export const Event = thing("Event", {
  ...eventFacts,
  jobs: Many(thing("JobState", { id: Type.Integer(), handler: Type.String(), state: OneOf(JOB_STATES) })),
});

export const EventDetail = thing("EventDetail", {
  ...eventFacts,
  request_id: OrNull(Type.String()),
  traceparent: OrNull(Type.String()),
  secret_fingerprint: OrNull(text("Tells which signing secret matched.")),
  body_sha256: Type.String(),
  body_bytes: Type.Integer(),
  outcome: OrNull(Outcome),
  jobs: Many(
    thing("JobOfEvent", {
      id: Type.Integer(),
      handler: Type.String(),
      queue: Type.String(),
      state: OneOf(JOB_STATES),
      attempts: Type.Integer(),
      max_attempts: Type.Integer(),
      error_class: OrNull(Type.String()),
      error_message: OrNull(Type.String()),
      created_at: Time,
      finished_at: OrNull(Time),
      tries: Many(Attempt),
    }),
  ),
  effects: Many(BriefEffect),
  body_state: OneOf(
    ["kept", "pruned", "erased"],
    "pruned is what retention did, erased what an operator did.",
  ),
  body_erased_at: OrNull(Time),
  data_key: OrNull(text("The data key that the body is sealed with.")),
  body: OrNull(text("As text where it is UTF-8, else as base64.")),
  body_encoding: OrNull(OneOf(["utf8", "base64"])),
  body_cut: Type.Boolean({
    description: "True where only the beginning is shown: the whole is at /events/{id}/body.",
  }),
  headers: OrNull(Type.Record(Type.String(), Type.Unknown())),
});

const jobFacts = {
  id: Type.Integer(),
  handler: Type.String(),
  queue: Type.String(),
  kind: OneOf(
    JOB_KINDS,
    "handler for jobs about an event, effect for acts on the outside world, task for the others.",
  ),
  event: OrNull(text("Our id of the event.")),
  event_id: OrNull(text("The sender's id of the event.")),
  type: OrNull(Type.String()),
  tenant: OrNull(Type.String()),
  attempts: count("Tries since it was made, or replayed."),
  recoveries: count("How often its worker died while it ran."),
  error_class: OrNull(Type.String()),
  error_message: OrNull(Type.String()),
  created_at: Time,
};

/** Where it is on its way. */
const jobPlace = {
  state: OneOf(JOB_STATES),
  key: OrNull(text("Jobs of one key run one after the other.")),
  priority: Type.Integer(),
  max_attempts: Type.Integer(),
  run_at: Type.Unsafe<Date | string>({ ...Time, description: "When it is or was due." }),
  started_at: OrNull(Time),
  finished_at: OrNull(Time),
  worker: OrNull(text("The worker that holds it now.")),
};

export const Job = thing("Job", {
  ...jobFacts,
  ...jobPlace,
});

const deadFacts = {
  ...jobFacts,
  source: OrNull(Type.String()),
  refs: Many(Ref),
  death: OrNull(OneOf(DEATHS)),
  revivals: count("How often the sender's resend brought it back."),
};

export const DeadLetter = thing("DeadLetter", { ...deadFacts, died_at: Time });

export const JobDetail = thing("JobDetail", {
  ...deadFacts,
  ...jobPlace,
  received_at: OrNull(Time),
  request_id: OrNull(Type.String()),
  has_body: Type.Boolean({
    description: "False where the event's body was pruned or erased: it cannot be replayed.",
  }),
  body_erased_at: OrNull(Time),
  outcome: OrNull(Outcome),
  tries: Many(Attempt),
  acts: Many(Act),
  effects: Many(BriefEffect),
});

export const DeadGroup = thing("DeadGroup", {
  error_class: OrNull(Type.String()),
  handler: Type.String(),
  count: Type.Integer(),
  oldest_at: Time,
  newest_at: Time,
  sample_message: OrNull(Type.String()),
  sample_id: Type.Integer(),
});
