// The things of the API as schemas: what each answer holds. Routes are checked against them by the compiler and by tests.
import { Type, type TObject, type TProperties, type TSchema } from "typebox";

/** A time: a Date in code, ISO 8601 in JSON. */
export const Time = Type.Unsafe<Date | string>({ type: "string", format: "date-time" });

/** A value, or null. */
export const OrNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** One of some words. */
export const OneOf = <const T extends readonly string[]>(words: T, text?: string) =>
  Type.Unsafe<T[number]>({ type: "string", enum: [...words], ...(text ? { description: text } : {}) });

const text = (description: string) => Type.String({ description });
const count = (description: string) => Type.Integer({ minimum: 0, description });

/** A thing with a name of its own in the document. */
export function thing<T extends TProperties>(title: string, properties: T): TObject<T> {
  return Type.Object(properties, { title, additionalProperties: false });
}

/** One page of a list. */
export const pageOf = <T extends TSchema>(item: T) =>
  Type.Object(
    {
      items: Type.Unsafe<readonly Type.Static<T>[]>(Type.Array(item)),
      cursor: Type.Optional(text("Where the next page begins; absent on the last.")),
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

const Names = Many(Type.String());

export const EVENT_STATUS = ["pending", "success", "failed", "skipped", "unrouted"] as const;
export const DEATHS = ["exhausted", "terminal", "crashed", "overdue"] as const;
export const JOB_STATE = ["scheduled", "ready", "waiting", "running", "done", "dead", "cancelled"] as const;

export const Ref = thing("Ref", {
  kind: text("What it is, such as payment_intent."),
  id: text("The business id itself."),
});

export const Attempt = thing("Attempt", {
  number: Type.Integer(),
  outcome: OneOf(["done", "retry", "not_yet", "dead", "returned", "crashed"]),
  error_class: OrNull(Type.String()),
  error_message: OrNull(Type.String()),
  error_stack: OrNull(Type.String()),
  started_at: OrNull(Time),
  ended_at: Time,
  duration_ms: OrNull(Type.Number()),
  worker: OrNull(Type.String()),
  trace_id: OrNull(Type.String()),
});

const Outcome = thing("Outcome", {
  status: OneOf(EVENT_STATUS),
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
  status: OneOf(EVENT_STATUS),
  origin: OneOf(["webhook", "reconcile", "api", "test"]),
  received_at: Time,
  occurred_at: OrNull(Time),
  processed_at: OrNull(Time),
  error_message: OrNull(Type.String()),
};

export const Event = thing("Event", {
  ...eventFacts,
  jobs: Many(thing("JobState", { id: Type.Integer(), handler: Type.String(), state: OneOf(JOB_STATE) })),
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
      state: OneOf(JOB_STATE),
      attempts: Type.Integer(),
      max_attempts: Type.Integer(),
      error_class: OrNull(Type.String()),
      error_message: OrNull(Type.String()),
      created_at: Time,
      finished_at: OrNull(Time),
      tries: Many(Attempt),
    }),
  ),
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
  kind: OneOf(["handler", "task"], "handler for jobs about an event, task for the others."),
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

export const Job = thing("Job", {
  ...jobFacts,
  state: OneOf(JOB_STATE),
  key: OrNull(Type.String()),
  priority: Type.Integer(),
  max_attempts: Type.Integer(),
  run_at: Time,
  started_at: OrNull(Time),
  finished_at: OrNull(Time),
  worker: OrNull(text("The worker that holds it now.")),
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
  state: OneOf(JOB_STATE),
  max_attempts: Type.Integer(),
  finished_at: OrNull(Time),
  received_at: OrNull(Time),
  request_id: OrNull(Type.String()),
  has_body: Type.Boolean({
    description: "False where the event's body was pruned or erased: it cannot be replayed.",
  }),
  body_erased_at: OrNull(Time),
  outcome: OrNull(Outcome),
  tries: Many(Attempt),
  acts: Many(
    thing("Act", { at: Time, actor: Type.String(), action: Type.String(), reason: OrNull(Type.String()) }),
  ),
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

export const Queue = thing("Queue", {
  name: Type.String(),
  paused: Type.Boolean(),
  reason: OrNull(text("Why it was paused or resumed last.")),
  changed_at: OrNull(Time),
  ready: Type.Integer(),
  scheduled: Type.Integer(),
  waiting: Type.Integer(),
  running: Type.Integer(),
  dead: Type.Integer(),
  oldest_ready_seconds: OrNull(Type.Number()),
});

export const Handler = thing("Handler", {
  name: Type.String(),
  kind: OneOf(["handler", "task"]),
  source: OrNull(Type.String()),
  pattern: OrNull(Type.String()),
  queue: OrNull(Type.String()),
  active: Type.Boolean({ description: "False where it was removed: new events make no jobs for it." }),
  workers: count("How many live workers have it."),
  unfinished: Type.Integer(),
  dead: Type.Integer(),
  orphaned: Type.Boolean({ description: "True where jobs wait for it and no live worker has it." }),
});

export const Worker = thing("Worker", {
  id: Type.String(),
  host: Type.String(),
  pid: Type.Integer(),
  version: Type.String(),
  state: OneOf(["live", "missing", "stopped", "replaced", "lost"]),
  handlers: Names,
  queues: Names,
  running: Type.Integer(),
  has_session: Type.Boolean(),
  started_at: Time,
  seen_at: Time,
  ended_at: OrNull(Time),
});

const rejectionFacts = {
  id: Type.Integer(),
  received_at: Time,
  source: Type.String(),
  reason: Type.String(),
  diagnosis: Type.String(),
  address: OrNull(text("Masked.")),
  request_id: Type.String(),
  body_bytes: Type.Integer(),
};

export const Rejection = thing("Rejection", rejectionFacts);

export const RejectionDetail = thing("RejectionDetail", {
  ...rejectionFacts,
  headers: Type.Record(Type.String(), Type.Unknown()),
  body_sample: text("The first bytes of the body."),
});

export const AuditEntry = thing("AuditEntry", {
  id: Type.Integer(),
  at: Time,
  actor: Type.String(),
  role: OneOf(["operator", "system", "handler"]),
  action: Type.String(),
  target: OrNull(Type.String()),
  tenant: OrNull(Type.String()),
  details: Type.Record(Type.String(), Type.Unknown()),
});

const tokenFacts = {
  id: Type.String(),
  name: Type.String(),
  hint: text("Its first letters."),
  scope: OneOf(["read", "operate", "admin"]),
  tenants: OrNull(Names),
  created_at: Time,
  created_by: Type.String(),
  expires_at: OrNull(Time),
  last_used_at: OrNull(Time),
  revoked_at: OrNull(Time),
  replaces: OrNull(Type.String()),
  active: Type.Boolean(),
};

export const Token = thing("Token", tokenFacts);

export const MadeToken = thing("MadeToken", {
  ...tokenFacts,
  secret: OrNull(text("Shown this once; null where the request was repeated with its Idempotency-Key.")),
});

export const OPERATION_STATE = ["running", "stopped", "aborted", "done"] as const;
export const ITEM_STATE = ["waiting", "replayed", "done", "dead", "dropped", "skipped", "gone"] as const;

const operationFacts = {
  id: Type.String(),
  name: Type.String(),
  kind: OneOf(["replay", "drop"]),
  reason: Type.String(),
  actor: Type.String(),
  tenants: OrNull(Names),
  selection: Type.Record(Type.String(), Type.Unknown()),
  state: OneOf(OPERATION_STATE, "stopped is by itself, above the limit of failures; aborted by a person."),
  rate_per_second: OrNull(Type.Number()),
  canary: Type.Boolean(),
  stage: OneOf(["one", "ten", "all"]),
  failure_limit: OrNull(Type.Number()),
  stop_reason: OrNull(Type.String()),
  total: Type.Integer(),
  counts: thing(
    "ItemCounts",
    Object.fromEntries(ITEM_STATE.map((state) => [state, Type.Integer()])) as Record<
      (typeof ITEM_STATE)[number],
      Type.TInteger
    >,
  ),
  progress: Type.Number({ description: "The share of its items that have ended, from 0 to 1." }),
  ended_per_second: OrNull(Type.Number()),
  estimated_end_at: OrNull(Time),
  created_at: Time,
  started_at: OrNull(Time),
  stopped_at: OrNull(Time),
  finished_at: OrNull(Time),
  overdue_seconds: Type.Number({ description: "How long a process should have looked at it already." }),
  fault: OrNull(text("Why its last step failed.")),
};

export const Operation = thing("Operation", operationFacts);

export const OperationDetail = thing("OperationDetail", {
  ...operationFacts,
  at_work: Many(
    thing("AtWork", {
      delay: OneOf(["running", "queue_paused", "no_worker", "later", "key", "ready"]),
      handler: Type.String(),
      queue: Type.String(),
      count: Type.Integer(),
      next_at: OrNull(Time),
    }),
  ),
  waits_for: OrNull(text("Why it does not go on at this moment, in words.")),
});

export const OperationItem = thing("OperationItem", {
  position: Type.Integer(),
  job: Type.Integer(),
  state: OneOf(ITEM_STATE),
  handler: OrNull(Type.String()),
  queue: OrNull(Type.String()),
  event: OrNull(Type.String()),
  event_id: OrNull(Type.String()),
  tenant: OrNull(Type.String()),
  error_class: OrNull(text("Of one that died again.")),
  message: OrNull(text("Why it died again, or was skipped.")),
  changed_at: Time,
});

const countFacts = {
  received: Type.Integer(),
  pending: Type.Integer(),
  success: Type.Integer(),
  failed: Type.Integer(),
  skipped: Type.Integer(),
  unrouted: Type.Integer(),
};

export const HourCount = thing("HourCount", {
  hour: Time,
  source: Type.String(),
  type: Type.String(),
  ...countFacts,
});

export const TypeCount = thing("TypeCount", {
  source: Type.String(),
  type: Type.String(),
  ...countFacts,
  last_received_at: Time,
  success_share: OrNull(Type.Number()),
});

export const Anomaly = thing("Anomaly", {
  id: Type.Integer(),
  hour: Time,
  source: Type.String(),
  type: Type.String(),
  kind: OneOf(["high", "low", "silent"]),
  received: Type.Integer(),
  expected_low: Type.Number(),
  expected_high: Type.Number(),
  noticed_at: Time,
  ended_at: OrNull(Time),
});

const Count = thing("Count", {
  count: Type.Integer(),
  exact: Type.Boolean({ description: "False where it is an estimate." }),
});

export const RetentionPreview = thing("RetentionPreview", {
  body_days: Type.Integer({ description: "0: for ever." }),
  attempt_days: Type.Integer(),
  job_days: Type.Integer(),
  months: Many(
    thing("RetentionMonth", {
      month: Type.String(),
      bodies: Count,
      kept: Count,
      bytes: Type.Integer(),
    }),
  ),
  stray_bodies: Count,
  jobs: Count,
  attempts: Count,
  workers: Count,
});

export const DataKey = thing("DataKey", {
  id: Type.String(),
  wrapped_by: text("The name of the master key that opens it."),
  created_at: Time,
  opens: Type.Boolean({ description: "False where the server's bodyKeys do not open it." }),
});

export const Erasure = thing("Erasure", {
  dry_run: Type.Boolean(),
  events: Type.Integer(),
  bodies: Type.Integer(),
  rejections: Type.Integer(),
  unfinished: Type.Optional(Type.Integer({ description: "Jobs that have not ended." })),
  running: Type.Optional(Type.Integer()),
  dead: Type.Optional(Type.Integer({ description: "Dead letters that could not be replayed any more." })),
  jobs_cancelled: Type.Optional(Type.Integer()),
  left_running: Type.Optional(Type.Integer()),
  left_unfinished: Type.Optional(Type.Integer()),
  stopped: Type.Optional(Type.Boolean()),
});
