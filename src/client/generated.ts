// The things and calls of the admin API. Made from its OpenAPI document: UPDATE_DOCS=1 npx vitest run --project unit test/docs
export interface Ref {
  /** What it is, such as payment_intent. */
  readonly kind: string;
  /** The business id itself. */
  readonly id: string;
}
export interface JobState {
  readonly id: number;
  readonly handler: string;
  readonly state: "scheduled" | "ready" | "waiting" | "running" | "done" | "dead" | "cancelled";
}
export interface Event {
  /** Our id, a UUID that sorts by time. */
  readonly id: string;
  readonly source: string;
  /** The sender's account; empty where there is only one. */
  readonly account: string;
  readonly livemode: boolean;
  /** The sender's id. */
  readonly event_id: string;
  readonly type: string;
  readonly tenant: string | null;
  readonly refs: readonly Ref[];
  readonly status: "pending" | "success" | "failed" | "skipped" | "unrouted";
  readonly origin: "webhook" | "reconcile" | "api" | "test";
  readonly received_at: string;
  readonly occurred_at: string | null;
  readonly processed_at: string | null;
  readonly error_message: string | null;
  readonly jobs: readonly JobState[];
}
export interface Outcome {
  readonly status: "pending" | "success" | "failed" | "skipped" | "unrouted";
  readonly error_message: string | null;
  readonly processed_at: string | null;
  readonly billing_id: string | null;
  readonly office_id: string | null;
}
export interface Attempt {
  readonly number: number;
  readonly outcome: "done" | "retry" | "not_yet" | "dead" | "returned" | "crashed";
  readonly error_class: string | null;
  readonly error_message: string | null;
  readonly error_stack: string | null;
  readonly started_at: string | null;
  readonly ended_at: string;
  readonly duration_ms: number | null;
  readonly worker: string | null;
  readonly trace_id: string | null;
}
export interface JobOfEvent {
  readonly id: number;
  readonly handler: string;
  readonly queue: string;
  readonly state: "scheduled" | "ready" | "waiting" | "running" | "done" | "dead" | "cancelled";
  readonly attempts: number;
  readonly max_attempts: number;
  readonly error_class: string | null;
  readonly error_message: string | null;
  readonly created_at: string;
  readonly finished_at: string | null;
  readonly tries: readonly Attempt[];
}
export interface BriefEffect {
  readonly id: string;
  readonly kind: "email" | "http" | "usage" | "call";
  readonly state:
    | "planned"
    | "sending"
    | "done"
    | "failed"
    | "cancelled"
    | "suppressed"
    | "uncertain"
    | "held";
  readonly target: string;
}
export interface EventDetail {
  /** Our id, a UUID that sorts by time. */
  readonly id: string;
  readonly source: string;
  /** The sender's account; empty where there is only one. */
  readonly account: string;
  readonly livemode: boolean;
  /** The sender's id. */
  readonly event_id: string;
  readonly type: string;
  readonly tenant: string | null;
  readonly refs: readonly Ref[];
  readonly status: "pending" | "success" | "failed" | "skipped" | "unrouted";
  readonly origin: "webhook" | "reconcile" | "api" | "test";
  readonly received_at: string;
  readonly occurred_at: string | null;
  readonly processed_at: string | null;
  readonly error_message: string | null;
  readonly request_id: string | null;
  readonly traceparent: string | null;
  readonly secret_fingerprint: string | null;
  readonly body_sha256: string;
  readonly body_bytes: number;
  readonly outcome: Outcome | null;
  readonly jobs: readonly JobOfEvent[];
  readonly effects: readonly BriefEffect[];
  /** pruned is what retention did, erased what an operator did. */
  readonly body_state: "kept" | "pruned" | "erased";
  readonly body_erased_at: string | null;
  readonly data_key: string | null;
  readonly body: string | null;
  readonly body_encoding: "utf8" | "base64" | null;
  /** True where only the beginning is shown: the whole is at /events/{id}/body. */
  readonly body_cut: boolean;
  readonly headers: Readonly<Record<string, unknown>> | null;
}
export interface RouteGroup {
  readonly handler: string;
  readonly type: string;
  readonly count: number;
}
export interface UnroutedType {
  readonly type: string;
  readonly count: number;
}
export interface Routed {
  readonly dry_run: boolean;
  /** Events that got jobs, or would get them. */
  readonly events: number;
  readonly jobs: number;
  readonly without_body?: number | undefined;
  readonly groups?: readonly RouteGroup[] | undefined;
  readonly unrouted?: readonly UnroutedType[] | undefined;
  /** Where the next batch begins; absent after the last. */
  readonly next?: string | undefined;
}
export interface Job {
  readonly id: number;
  readonly handler: string;
  readonly queue: string;
  /** handler for jobs about an event, effect for acts on the outside world, task for the others. */
  readonly kind: "handler" | "task" | "effect";
  readonly event: string | null;
  readonly event_id: string | null;
  readonly type: string | null;
  readonly tenant: string | null;
  /** Tries since it was made, or replayed. */
  readonly attempts: number;
  /** How often its worker died while it ran. */
  readonly recoveries: number;
  readonly error_class: string | null;
  readonly error_message: string | null;
  readonly created_at: string;
  readonly state: "scheduled" | "ready" | "waiting" | "running" | "done" | "dead" | "cancelled";
  readonly key: string | null;
  readonly priority: number;
  readonly max_attempts: number;
  /** When it is or was due. */
  readonly run_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly worker: string | null;
}
export interface Act {
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly reason: string | null;
}
export interface JobDetail {
  readonly id: number;
  readonly handler: string;
  readonly queue: string;
  /** handler for jobs about an event, effect for acts on the outside world, task for the others. */
  readonly kind: "handler" | "task" | "effect";
  readonly event: string | null;
  readonly event_id: string | null;
  readonly type: string | null;
  readonly tenant: string | null;
  /** Tries since it was made, or replayed. */
  readonly attempts: number;
  /** How often its worker died while it ran. */
  readonly recoveries: number;
  readonly error_class: string | null;
  readonly error_message: string | null;
  readonly created_at: string;
  readonly source: string | null;
  readonly refs: readonly Ref[];
  readonly death: "exhausted" | "terminal" | "crashed" | "overdue" | null;
  /** How often the sender's resend brought it back. */
  readonly revivals: number;
  readonly state: "scheduled" | "ready" | "waiting" | "running" | "done" | "dead" | "cancelled";
  readonly key: string | null;
  readonly priority: number;
  readonly max_attempts: number;
  /** When it is or was due. */
  readonly run_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly worker: string | null;
  readonly received_at: string | null;
  readonly request_id: string | null;
  /** False where the event's body was pruned or erased: it cannot be replayed. */
  readonly has_body: boolean;
  readonly body_erased_at: string | null;
  readonly outcome: Outcome | null;
  readonly tries: readonly Attempt[];
  readonly acts: readonly Act[];
  readonly effects: readonly BriefEffect[];
}
export interface DeadLetter {
  readonly id: number;
  readonly handler: string;
  readonly queue: string;
  /** handler for jobs about an event, effect for acts on the outside world, task for the others. */
  readonly kind: "handler" | "task" | "effect";
  readonly event: string | null;
  readonly event_id: string | null;
  readonly type: string | null;
  readonly tenant: string | null;
  /** Tries since it was made, or replayed. */
  readonly attempts: number;
  /** How often its worker died while it ran. */
  readonly recoveries: number;
  readonly error_class: string | null;
  readonly error_message: string | null;
  readonly created_at: string;
  readonly source: string | null;
  readonly refs: readonly Ref[];
  readonly death: "exhausted" | "terminal" | "crashed" | "overdue" | null;
  /** How often the sender's resend brought it back. */
  readonly revivals: number;
  readonly died_at: string;
}
export interface DeadGroup {
  readonly error_class: string | null;
  readonly handler: string;
  readonly count: number;
  readonly oldest_at: string;
  readonly newest_at: string;
  readonly sample_message: string | null;
  readonly sample_id: number;
}
export interface DeadFilter {
  /** Only of this handler or task. */
  readonly handler?: string | undefined;
  /** Only of this queue. */
  readonly queue?: string | undefined;
  /** Only about events of this type. */
  readonly type?: string | undefined;
  /** Only about events of this source. */
  readonly source?: string | undefined;
  /** Only of this tenant. */
  readonly tenant?: string | undefined;
  /** Only about events with this business id. */
  readonly ref?: string | undefined;
  /** Only about this event, by our id or by the sender's. */
  readonly event?: string | undefined;
  /** Only that died of this class of error. */
  readonly error_class?: string | undefined;
  /** Only that died in this way. */
  readonly death?: "exhausted" | "terminal" | "crashed" | "overdue" | undefined;
  /** Died at this time or later. */
  readonly since?: string | undefined;
  /** Died before this time. */
  readonly until?: string | undefined;
}
export interface PreviewGroup {
  readonly handler: string;
  readonly error_class: string | null;
  readonly count: number;
  readonly without_body: number;
  /** How many live workers have the handler. */
  readonly workers: number;
}
export interface EffectCount {
  readonly count: number;
  /** The first twenty. */
  readonly items: readonly BriefEffect[];
}
export interface EffectPreview {
  readonly would_run: EffectCount;
  readonly done: EffectCount;
}
export interface Skip {
  readonly id: number;
  readonly reason: "unknown" | "not_dead" | "died_again" | "no_body" | "erased";
}
export interface DeadChange {
  readonly dry_run: boolean;
  /** How many would be changed. */
  readonly count?: number | undefined;
  /** Those of them that cannot be replayed. */
  readonly without_body?: number | undefined;
  readonly groups?: readonly PreviewGroup[] | undefined;
  readonly effects?: EffectPreview | undefined;
  readonly changed?: number | undefined;
  readonly skipped?: number | undefined;
  readonly skips?: readonly Skip[] | undefined;
}
export interface ItemCounts {
  readonly waiting: number;
  readonly replayed: number;
  readonly done: number;
  readonly dead: number;
  readonly dropped: number;
  readonly skipped: number;
  readonly gone: number;
}
export interface Operation {
  readonly id: string;
  readonly name: string;
  readonly kind: "replay" | "drop";
  readonly reason: string;
  readonly actor: string;
  readonly tenants: readonly string[] | null;
  readonly selection: Readonly<Record<string, unknown>>;
  /** stopped is by itself, above the limit of failures; aborted by a person. */
  readonly state: "running" | "stopped" | "aborted" | "done";
  readonly rate_per_second: number | null;
  readonly canary: boolean;
  readonly stage: "one" | "ten" | "all";
  readonly failure_limit: number | null;
  readonly stop_reason: string | null;
  readonly total: number;
  readonly counts: ItemCounts;
  /** The share of its items that have ended, from 0 to 1. */
  readonly progress: number;
  readonly ended_per_second: number | null;
  readonly estimated_end_at: string | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly stopped_at: string | null;
  readonly finished_at: string | null;
  /** How long a process should have looked at it already. */
  readonly overdue_seconds: number;
  readonly fault: string | null;
}
export interface OperationPreview {
  readonly count: number;
  /** Those of them that cannot be replayed. */
  readonly without_body: number;
  readonly groups: readonly PreviewGroup[];
  /** Those that wait in another operation: they would be skipped. */
  readonly in_operation: number;
  readonly seconds: number | null;
  /** How many items one operation may have. */
  readonly most: number;
}
export interface AtWork {
  readonly delay: "running" | "queue_paused" | "no_worker" | "later" | "key" | "ready";
  readonly handler: string;
  readonly queue: string;
  readonly count: number;
  readonly next_at: string | null;
}
export interface OperationDetail {
  readonly id: string;
  readonly name: string;
  readonly kind: "replay" | "drop";
  readonly reason: string;
  readonly actor: string;
  readonly tenants: readonly string[] | null;
  readonly selection: Readonly<Record<string, unknown>>;
  /** stopped is by itself, above the limit of failures; aborted by a person. */
  readonly state: "running" | "stopped" | "aborted" | "done";
  readonly rate_per_second: number | null;
  readonly canary: boolean;
  readonly stage: "one" | "ten" | "all";
  readonly failure_limit: number | null;
  readonly stop_reason: string | null;
  readonly total: number;
  readonly counts: ItemCounts;
  /** The share of its items that have ended, from 0 to 1. */
  readonly progress: number;
  readonly ended_per_second: number | null;
  readonly estimated_end_at: string | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly stopped_at: string | null;
  readonly finished_at: string | null;
  /** How long a process should have looked at it already. */
  readonly overdue_seconds: number;
  readonly fault: string | null;
  readonly at_work: readonly AtWork[];
  readonly waits_for: string | null;
}
export interface OperationItem {
  readonly position: number;
  readonly job: number;
  readonly state: "waiting" | "replayed" | "done" | "dead" | "dropped" | "skipped" | "gone";
  readonly handler: string | null;
  readonly queue: string | null;
  readonly event: string | null;
  readonly event_id: string | null;
  readonly tenant: string | null;
  readonly error_class: string | null;
  readonly message: string | null;
  readonly changed_at: string;
}
export interface OperationChange {
  readonly id: string;
  readonly state: "running" | "stopped" | "aborted" | "done";
  /** False where it was so before, or has ended. */
  readonly changed: boolean;
}
export interface Effect {
  /** A UUID that sorts by time. Peers that know idempotency keys were given it. */
  readonly id: string;
  /** call is one whose answer somebody waited for. */
  readonly kind: "email" | "http" | "usage" | "call";
  /** A call that was begun by somebody who is gone is uncertain. */
  readonly state:
    | "planned"
    | "sending"
    | "done"
    | "failed"
    | "cancelled"
    | "suppressed"
    | "uncertain"
    | "held";
  readonly tenant: string | null;
  /** To whom: an address, a URL, a meter. */
  readonly target: string;
  /** Unique for the tenant and kind, for ever. */
  readonly dedupe: string;
  readonly amount: number | null;
  readonly currency: string | null;
  /** Whose limits hold. */
  readonly destination: string;
  readonly event: string | null;
  readonly event_id: string | null;
  readonly handler: string | null;
  readonly job: number | null;
  /** Calls that were begun. */
  readonly attempt: number;
  /** Those of them that ended without anybody knowing how. */
  readonly uncertainties: number;
  /** What follows where nobody knows whether a call was heard. */
  readonly on_uncertain: "retry" | "hold";
  readonly after: string | null;
  readonly suppressed_by: string | null;
  readonly planned_at: string;
  readonly begun_at: string | null;
  readonly ended_at: string | null;
  readonly reason: string | null;
  readonly feedback: string | null;
  readonly feedback_at: string | null;
  readonly waits_for: string | null;
  readonly next_at: string | null;
  readonly template: string | null;
  readonly locale: string | null;
  readonly accepted_as: string | null;
  /** Whether what it held is there: sealed under a key that the server lacks, altered since it was sealed, or removed by retention (pruned) or by an operator (erased). */
  readonly content: "kept" | "sealed" | "altered" | "pruned" | "erased";
  readonly content_removed_at: string | null;
}
export interface EffectAttempt {
  readonly number: number;
  readonly result: "done" | "again" | "failed" | "uncertain" | "blocked" | null;
  /** True where an earlier call may have been the one that counted. */
  readonly repeats: boolean;
  readonly error_class: string | null;
  readonly error_message: string | null;
  /** What the peer said, where a program can read it. */
  readonly answer: unknown;
  readonly started_at: string;
  readonly ended_at: string | null;
  readonly duration_ms: number | null;
}
export interface EffectDetail {
  /** A UUID that sorts by time. Peers that know idempotency keys were given it. */
  readonly id: string;
  /** call is one whose answer somebody waited for. */
  readonly kind: "email" | "http" | "usage" | "call";
  /** A call that was begun by somebody who is gone is uncertain. */
  readonly state:
    | "planned"
    | "sending"
    | "done"
    | "failed"
    | "cancelled"
    | "suppressed"
    | "uncertain"
    | "held";
  readonly tenant: string | null;
  /** To whom: an address, a URL, a meter. */
  readonly target: string;
  /** Unique for the tenant and kind, for ever. */
  readonly dedupe: string;
  readonly amount: number | null;
  readonly currency: string | null;
  /** Whose limits hold. */
  readonly destination: string;
  readonly event: string | null;
  readonly event_id: string | null;
  readonly handler: string | null;
  readonly job: number | null;
  /** Calls that were begun. */
  readonly attempt: number;
  /** Those of them that ended without anybody knowing how. */
  readonly uncertainties: number;
  /** What follows where nobody knows whether a call was heard. */
  readonly on_uncertain: "retry" | "hold";
  readonly after: string | null;
  readonly suppressed_by: string | null;
  readonly planned_at: string;
  readonly begun_at: string | null;
  readonly ended_at: string | null;
  readonly reason: string | null;
  readonly feedback: string | null;
  readonly feedback_at: string | null;
  readonly waits_for: string | null;
  readonly next_at: string | null;
  readonly template: string | null;
  readonly locale: string | null;
  readonly accepted_as: string | null;
  /** Whether what it held is there: sealed under a key that the server lacks, altered since it was sealed, or removed by retention (pruned) or by an operator (erased). */
  readonly content: "kept" | "sealed" | "altered" | "pruned" | "erased";
  readonly content_removed_at: string | null;
  /** What the peer gave for it; null for kind call, whose answer may hold secrets. */
  readonly receipt: unknown;
  readonly attempts: readonly EffectAttempt[];
  readonly followers: readonly BriefEffect[];
  readonly acts: readonly Act[];
}
export interface EffectResolution {
  readonly id: string;
  readonly state:
    | "planned"
    | "sending"
    | "done"
    | "failed"
    | "cancelled"
    | "suppressed"
    | "uncertain"
    | "held";
  readonly job: number | null;
}
export interface EffectCancellation {
  readonly id: string;
  /** Always cancelled. */
  readonly state: string;
  readonly followers: readonly string[];
}
export interface Suppression {
  readonly address: string;
  readonly tenant: string | null;
  readonly reason: "bounce" | "complaint" | "refused" | "operator";
  readonly effect: string | null;
  readonly at: string;
}
export interface SuppressionChange {
  readonly address: string;
  readonly tenant: string | null;
  readonly suppressed: boolean;
  /** False where it was so before. */
  readonly changed: boolean;
}
export interface Destination {
  readonly name: string;
  readonly paused_until: string | null;
  readonly pause_reason: string | null;
  /** True where its circuit is open: it failed too often or refused us, and nothing goes there. */
  readonly open: boolean;
  readonly open_reason: string | null;
  readonly opened_at: string | null;
  readonly probe_at: string | null;
  /** Calls in a row that failed. */
  readonly failures: number;
  /** Calls under way. */
  readonly sending: number;
  /** Effects that have still to go there. */
  readonly waiting: number;
  readonly calls_day: number | null;
}
export interface DestinationPause {
  readonly name: string;
  readonly paused_until: string;
}
export interface DestinationResumption {
  readonly name: string;
  /** False where it was neither paused nor open. */
  readonly changed: boolean;
  /** Effects that go out now instead of later. */
  readonly woken: number;
}
export interface Queue {
  readonly name: string;
  readonly paused: boolean;
  readonly reason: string | null;
  readonly changed_at: string | null;
  readonly ready: number;
  readonly scheduled: number;
  readonly waiting: number;
  readonly running: number;
  readonly dead: number;
  readonly oldest_ready_seconds: number | null;
}
export interface QueueChange {
  readonly name: string;
  readonly paused: boolean;
  /** False where it was so before. */
  readonly changed: boolean;
}
export interface Handler {
  readonly name: string;
  readonly kind: "handler" | "task" | "effect";
  readonly source: string | null;
  readonly pattern: string | null;
  readonly queue: string | null;
  /** False where it was removed: new events make no jobs for it. */
  readonly active: boolean;
  /** How many live workers have it. */
  readonly workers: number;
  readonly unfinished: number;
  readonly dead: number;
  /** True where jobs wait for it and no live worker has it. */
  readonly orphaned: boolean;
}
export interface HandlerRemoval {
  readonly name: string;
}
export interface Worker {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly state: "live" | "missing" | "stopped" | "replaced" | "lost";
  readonly handlers: readonly string[];
  readonly queues: readonly string[];
  readonly running: number;
  readonly has_session: boolean;
  readonly started_at: string;
  readonly seen_at: string;
  readonly ended_at: string | null;
}
export interface Rejection {
  readonly id: number;
  readonly received_at: string;
  readonly source: string;
  readonly reason: string;
  readonly diagnosis: string;
  readonly address: string | null;
  readonly request_id: string;
  readonly body_bytes: number;
}
export interface RejectionDetail {
  readonly id: number;
  readonly received_at: string;
  readonly source: string;
  readonly reason: string;
  readonly diagnosis: string;
  readonly address: string | null;
  readonly request_id: string;
  readonly body_bytes: number;
  readonly headers: Readonly<Record<string, unknown>>;
  /** The first bytes of the body. */
  readonly body_sample: string;
}
export interface AuditEntry {
  readonly id: number;
  readonly at: string;
  readonly actor: string;
  readonly role: "operator" | "system" | "handler";
  readonly action: string;
  readonly target: string | null;
  readonly tenant: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}
export interface TypeCount {
  readonly source: string;
  readonly type: string;
  readonly received: number;
  readonly pending: number;
  readonly success: number;
  readonly failed: number;
  readonly skipped: number;
  readonly unrouted: number;
  readonly last_received_at: string;
  readonly success_share: number | null;
}
export interface HourCount {
  readonly hour: string;
  readonly source: string;
  readonly type: string;
  readonly received: number;
  readonly pending: number;
  readonly success: number;
  readonly failed: number;
  readonly skipped: number;
  readonly unrouted: number;
}
export interface Anomaly {
  readonly id: number;
  readonly hour: string;
  readonly source: string;
  readonly type: string;
  readonly kind: "high" | "low" | "silent";
  readonly received: number;
  readonly expected_low: number;
  readonly expected_high: number;
  readonly noticed_at: string;
  readonly ended_at: string | null;
}
export interface Count {
  readonly count: number;
  /** False where it is an estimate. */
  readonly exact: boolean;
}
export interface RetentionMonth {
  readonly month: string;
  readonly bodies: Count;
  readonly kept: Count;
  readonly bytes: number;
}
export interface RetentionPreview {
  /** 0: for ever. */
  readonly body_days: number;
  readonly attempt_days: number;
  readonly job_days: number;
  readonly effect_days: number;
  readonly longer_elsewhere: readonly string[];
  readonly months: readonly RetentionMonth[];
  readonly stray_bodies: Count;
  readonly jobs: Count;
  readonly attempts: Count;
  readonly workers: Count;
  readonly operations: Count;
  readonly effects: Count;
  readonly effect_attempts: Count;
  readonly destination_hours: Count;
}
export interface Erasure {
  readonly dry_run: boolean;
  readonly events: number;
  readonly bodies: number;
  /** Effects that these events decided, and that hold what was sent. */
  readonly effects: number;
  readonly rejections: number;
  /** Jobs and effects that have not ended. */
  readonly unfinished?: number | undefined;
  readonly running?: number | undefined;
  /** Dead letters that could not be replayed any more. */
  readonly dead?: number | undefined;
  readonly jobs_cancelled?: number | undefined;
  readonly left_running?: number | undefined;
  readonly left_unfinished?: number | undefined;
  readonly stopped?: boolean | undefined;
}
export interface DataKey {
  readonly id: string;
  /** The name of the master key that opens it. */
  readonly wrapped_by: string;
  readonly created_at: string;
  /** False where the server's bodyKeys do not open it. */
  readonly opens: boolean;
}
export interface Token {
  readonly id: string;
  readonly name: string;
  /** Its first letters. */
  readonly hint: string;
  readonly scope: "read" | "operate" | "admin";
  readonly tenants: readonly string[] | null;
  readonly created_at: string;
  readonly created_by: string;
  readonly lifetime_seconds: number | null;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
  readonly replaces: string | null;
  readonly active: boolean;
}
export interface MadeToken {
  readonly id: string;
  readonly name: string;
  /** Its first letters. */
  readonly hint: string;
  readonly scope: "read" | "operate" | "admin";
  readonly tenants: readonly string[] | null;
  readonly created_at: string;
  readonly created_by: string;
  readonly lifetime_seconds: number | null;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
  readonly replaces: string | null;
  readonly active: boolean;
  readonly secret: string | null;
}
export interface TokenRevocation {
  readonly id: string;
}
/** What each call takes and gives. */
export interface Calls {
  /** Lists what was received, newest first. Events that arrive meanwhile do not shift the pages. */
  listEvents: {
    input: {
      /** Only of this source. */
      readonly source?: string | undefined;
      /** Only of this type. */
      readonly type?: string | undefined;
      /** Only with this business id, such as pi_…. */
      readonly ref?: string | undefined;
      /** Only of this tenant. */
      readonly tenant?: string | undefined;
      /** Only with this status. */
      readonly status?: "pending" | "success" | "failed" | "skipped" | "unrouted" | undefined;
      /** Received at this time or later. */
      readonly since?: string | undefined;
      /** Received before this time. */
      readonly until?: string | undefined;
      /** How many items. */
      readonly limit?: number | undefined;
      /** The cursor of the answer before. */
      readonly cursor?: string | undefined;
    };
    output: {
      readonly items: readonly Event[];
      /** Where the next page begins; absent on the last. A page may hold fewer items than the limit, or none, and still not be the last: on large tables one request looks through 100,000 rows at the most. */
      readonly cursor?: string | undefined;
    };
  };
  /** One event with its body, refs, outcome, jobs and attempts; by our id or by the sender's. */
  getEvent: {
    input: {
      readonly id: string;
    };
    output: EventDetail;
  };
  /** The body of one event, the bytes as they came. */
  getEventBody: {
    input: {
      readonly id: string;
    };
    output: Uint8Array;
  };
  /** Gives stored events that nobody wanted to handlers that came later, a batch in each request. */
  routeEvents: {
    input: {
      /** Received at this time or later. */
      readonly since: string;
      /** Received before this time. */
      readonly until?: string | undefined;
      /** Only events of this type. */
      readonly type?: string | undefined;
      /** Only for this handler. */
      readonly handler?: string | undefined;
      /** Where the batch before ended: its `next`. */
      readonly after?: string | undefined;
      /** Only say what would be done. */
      readonly dry_run?: boolean | undefined;
      /** Why, in words. Kept in the audit. */
      readonly reason?: string | undefined;
    };
    output: Routed;
  };
  /** Lists jobs, newest first. */
  listJobs: {
    input: {
      /** Only in this state. */
      readonly state?:
        | "scheduled"
        | "ready"
        | "waiting"
        | "running"
        | "done"
        | "dead"
        | "cancelled"
        | undefined;
      /** Only of this queue. */
      readonly queue?: string | undefined;
      /** Only of this handler or task. */
      readonly handler?: string | undefined;
      /** Only of this tenant. */
      readonly tenant?: string | undefined;
      /** Only with this key. */
      readonly key?: string | undefined;
      /** Only of this event, by our id or by the sender's. */
      readonly event?: string | undefined;
      /** Only those that this worker holds now: its id, or host/pid. */
      readonly worker?: string | undefined;
      /** Made at this time or later. */
      readonly since?: string | undefined;
      /** Made before this time. */
      readonly until?: string | undefined;
      /** How many items. */
      readonly limit?: number | undefined;
      /** The cursor of the answer before. */
      readonly cursor?: string | undefined;
    };
    output: {
      readonly items: readonly Job[];
      /** Where the next page begins; absent on the last. A page may hold fewer items than the limit, or none, and still not be the last: on large tables one request looks through 100,000 rows at the most. */
      readonly cursor?: string | undefined;
    };
  };
  /** One job of any state with its event, every try and what was done to it. */
  getJob: {
    input: {
      readonly id: string;
    };
    output: JobDetail;
  };
  /** Lists dead letters, newest first. */
  listDead: {
    input: {
      /** Only of this handler or task. */
      readonly handler?: string | undefined;
      /** Only of this queue. */
      readonly queue?: string | undefined;
      /** Only about events of this type. */
      readonly type?: string | undefined;
      /** Only about events of this source. */
      readonly source?: string | undefined;
      /** Only of this tenant. */
      readonly tenant?: string | undefined;
      /** Only about events with this business id. */
      readonly ref?: string | undefined;
      /** Only about this event, by our id or by the sender's. */
      readonly event?: string | undefined;
      /** Only that died of this class of error. */
      readonly error_class?: string | undefined;
      /** Only that died in this way. */
      readonly death?: "exhausted" | "terminal" | "crashed" | "overdue" | undefined;
      /** Died at this time or later. */
      readonly since?: string | undefined;
      /** Died before this time. */
      readonly until?: string | undefined;
      /** Only these, separated by commas. */
      readonly ids?: string | undefined;
      /** How many items. */
      readonly limit?: number | undefined;
      /** The cursor of the answer before. */
      readonly cursor?: string | undefined;
    };
    output: {
      readonly items: readonly DeadLetter[];
      /** Where the next page begins; absent on the last. A page may hold fewer items than the limit, or none, and still not be the last: on large tables one request looks through 100,000 rows at the most. */
      readonly cursor?: string | undefined;
    };
  };
  /** Groups dead letters by error class and handler, the largest first. */
  groupDead: {
    input: {
      /** Only of this handler or task. */
      readonly handler?: string | undefined;
      /** Only of this queue. */
      readonly queue?: string | undefined;
      /** Only about events of this type. */
      readonly type?: string | undefined;
      /** Only about events of this source. */
      readonly source?: string | undefined;
      /** Only of this tenant. */
      readonly tenant?: string | undefined;
      /** Only about events with this business id. */
      readonly ref?: string | undefined;
      /** Only about this event, by our id or by the sender's. */
      readonly event?: string | undefined;
      /** Only that died of this class of error. */
      readonly error_class?: string | undefined;
      /** Only that died in this way. */
      readonly death?: "exhausted" | "terminal" | "crashed" | "overdue" | undefined;
      /** Died at this time or later. */
      readonly since?: string | undefined;
      /** Died before this time. */
      readonly until?: string | undefined;
      /** Only these, separated by commas. */
      readonly ids?: string | undefined;
    };
    output: {
      readonly items: readonly DeadGroup[];
    };
  };
  /** One dead letter with its event, every try and what was done to it; also where it is no longer dead. */
  getDead: {
    input: {
      readonly id: string;
    };
    output: JobDetail;
  };
  /** Puts dead letters back to work, up to 1,000 in one commit; an operation takes more. */
  replayDead: {
    input: {
      /** These jobs. */
      readonly ids?: readonly number[] | undefined;
      readonly filter?: DeadFilter | undefined;
      /** Every dead letter. */
      readonly all?: true | undefined;
      /** Only say what would be changed. */
      readonly dry_run?: boolean | undefined;
      /** Why, in words. Kept in the audit. */
      readonly reason?: string | undefined;
    };
    output: DeadChange;
  };
  /** Gives dead letters up for good, up to 1,000 in one commit; an operation takes more. */
  dropDead: {
    input: {
      /** These jobs. */
      readonly ids?: readonly number[] | undefined;
      readonly filter?: DeadFilter | undefined;
      /** Every dead letter. */
      readonly all?: true | undefined;
      /** Only say what would be changed. */
      readonly dry_run?: boolean | undefined;
      /** Why, in words. Kept in the audit. */
      readonly reason?: string | undefined;
    };
    output: DeadChange;
  };
  /** Lists operations, newest first. */
  listOperations: {
    input: {
      /** Only in this state. */
      readonly state?: "running" | "stopped" | "aborted" | "done" | undefined;
      /** How many items. */
      readonly limit?: number | undefined;
      /** The cursor of the answer before. */
      readonly cursor?: string | undefined;
    };
    output: {
      readonly items: readonly Operation[];
      /** Where the next page begins; absent on the last. A page may hold fewer items than the limit, or none, and still not be the last: on large tables one request looks through 100,000 rows at the most. */
      readonly cursor?: string | undefined;
    };
  };
  /** Chooses the dead letters now, and begins. */
  createOperation: {
    input: {
      /** In a person's words. */
      readonly name: string;
      /** What is done to each of them. */
      readonly kind: "replay" | "drop";
      /** These jobs. */
      readonly ids?: readonly number[] | undefined;
      readonly filter?: DeadFilter | undefined;
      /** Every dead letter. */
      readonly all?: true | undefined;
      /** Items per second. Left out: as fast as it goes. */
      readonly rate?: number | undefined;
      /** First one, then ten, then all; each stage waits until the one before has ended. */
      readonly canary?: boolean | undefined;
      /** Above this share of items that died again it stops by itself. */
      readonly failure_limit?: number | undefined;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: OperationDetail;
  };
  /** Says what an operation would touch, and changes nothing. */
  previewOperation: {
    input: {
      /** What is done to each of them. */
      readonly kind: "replay" | "drop";
      /** These jobs. */
      readonly ids?: readonly number[] | undefined;
      readonly filter?: DeadFilter | undefined;
      /** Every dead letter. */
      readonly all?: true | undefined;
      /** Items per second. Left out: as fast as it goes. */
      readonly rate?: number | undefined;
      /** First one, then ten, then all; each stage waits until the one before has ended. */
      readonly canary?: boolean | undefined;
      /** Above this share of items that died again it stops by itself. */
      readonly failure_limit?: number | undefined;
    };
    output: OperationPreview;
  };
  /** One operation with how far it has come, and what it waits for. */
  getOperation: {
    input: {
      readonly id: string;
    };
    output: OperationDetail;
  };
  /** What became of each job of an operation, in their order. */
  listOperationItems: {
    input: {
      readonly id: string;
      /** Only in this state. */
      readonly state?: "waiting" | "replayed" | "done" | "dead" | "dropped" | "skipped" | "gone" | undefined;
      /** How many items. */
      readonly limit?: number | undefined;
      /** The cursor of the answer before. */
      readonly cursor?: string | undefined;
    };
    output: {
      readonly items: readonly OperationItem[];
      /** Where the next page begins; absent on the last. A page may hold fewer items than the limit, or none, and still not be the last: on large tables one request looks through 100,000 rows at the most. */
      readonly cursor?: string | undefined;
    };
  };
  /** Touches no further item. What was replayed before goes on to its end. */
  abortOperation: {
    input: {
      readonly id: string;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: OperationChange;
  };
  /** Goes on with the items that wait, after an abort or a stop. */
  resumeOperation: {
    input: {
      readonly id: string;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: OperationChange;
  };
  /** Lists effects, newest first. */
  listEffects: {
    input: {
      /** Only mails to this address, in whatever case. */
      readonly to?: string | undefined;
      /** Only of this kind. */
      readonly kind?: "email" | "http" | "usage" | "call" | undefined;
      /** Only in this state. */
      readonly state?:
        | "planned"
        | "sending"
        | "done"
        | "failed"
        | "cancelled"
        | "suppressed"
        | "uncertain"
        | "held"
        | undefined;
      /** Only of this tenant. */
      readonly tenant?: string | undefined;
      /** Only with exactly this target. */
      readonly target?: string | undefined;
      /** Only decided by this event, by our id or by the sender's. */
      readonly event?: string | undefined;
      /** Only with this dedupe key. */
      readonly dedupe?: string | undefined;
      /** Only to this destination. */
      readonly destination?: string | undefined;
      /** Intended at this time or later. */
      readonly since?: string | undefined;
      /** Intended before this time. */
      readonly until?: string | undefined;
      /** How many items. */
      readonly limit?: number | undefined;
      /** The cursor of the answer before. */
      readonly cursor?: string | undefined;
    };
    output: {
      readonly items: readonly Effect[];
      /** Where the next page begins; absent on the last. A page may hold fewer items than the limit, or none, and still not be the last: on large tables one request looks through 100,000 rows at the most. */
      readonly cursor?: string | undefined;
    };
  };
  /** One effect with its receipt, every call, what waits for it, and what was done to it. */
  getEffect: {
    input: {
      readonly id: string;
    };
    output: EffectDetail;
  };
  /** Decides an effect of which nobody knows whether it happened. */
  resolveEffect: {
    input: {
      readonly id: string;
      /** done: it happened. failed: it did not, and shall not. again: it is tried again, as a repetition. */
      readonly as: "done" | "failed" | "again";
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: EffectResolution;
  };
  /** Cancels an effect that has not begun, with those that wait for it. Its dedupe key stays used. */
  cancelEffect: {
    input: {
      readonly id: string;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: EffectCancellation;
  };
  /** Lists the addresses that get no mail, in their order. */
  listSuppressions: {
    input: {
      /** Only this address, in whatever case. */
      readonly address?: string | undefined;
      /** Only of this tenant. */
      readonly tenant?: string | undefined;
      /** How many items. */
      readonly limit?: number | undefined;
      /** The cursor of the answer before. */
      readonly cursor?: string | undefined;
    };
    output: {
      readonly items: readonly Suppression[];
      /** Where the next page begins; absent on the last. A page may hold fewer items than the limit, or none, and still not be the last: on large tables one request looks through 100,000 rows at the most. */
      readonly cursor?: string | undefined;
    };
  };
  /** Sends no mail to an address any more, not even what is planned. */
  addSuppression: {
    input: {
      /** One plain mailbox. */
      readonly address: string;
      /** Whose mail; without it, mail of nobody in particular. */
      readonly tenant?: string | undefined;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: SuppressionChange;
  };
  /** Sends mail to an address again; what was suppressed meanwhile is not sent. */
  removeSuppression: {
    input: {
      /** One plain mailbox. */
      readonly address: string;
      /** Whose mail; without it, mail of nobody in particular. */
      readonly tenant?: string | undefined;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: SuppressionChange;
  };
  /** Lists whom effects go to, with what waits for each. */
  listDestinations: {
    input: Record<string, undefined>;
    output: {
      readonly items: readonly Destination[];
    };
  };
  /** Lets no call to a destination begin for some time; a longer pause that it has already holds. */
  pauseDestination: {
    input: {
      /** The destination, as it is listed. */
      readonly name: string;
      /** For how long. */
      readonly minutes: number;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: DestinationPause;
  };
  /** Ends a destination's pause and resets its circuit; what waited for it goes out now. */
  resumeDestination: {
    input: {
      /** The destination, as it is listed. */
      readonly name: string;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: DestinationResumption;
  };
  /** Lists the queues with what waits in them. */
  listQueues: {
    input: Record<string, undefined>;
    output: {
      readonly items: readonly Queue[];
    };
  };
  /** Lets no worker claim jobs of a queue; those that run go on to their end. */
  pauseQueue: {
    input: {
      readonly name: string;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: QueueChange;
  };
  /** Lets workers claim jobs of a queue again. */
  resumeQueue: {
    input: {
      readonly name: string;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: QueueChange;
  };
  /** Lists handlers and tasks, who has them, and what waits for them. */
  listHandlers: {
    input: Record<string, undefined>;
    output: {
      readonly items: readonly Handler[];
    };
  };
  /** Takes back a handler's claim on events; its jobs stay. */
  removeHandler: {
    input: {
      readonly name: string;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: HandlerRemoval;
  };
  /** Lists the workers that live, with what each has in hand. */
  listWorkers: {
    input: {
      /** Also those that have ended. */
      readonly ended?: boolean | undefined;
    };
    output: {
      readonly items: readonly Worker[];
    };
  };
  /** Lists requests that were refused, newest first, each with its diagnosis. */
  listRejections: {
    input: {
      /** Only of this source. */
      readonly source?: string | undefined;
      /** Only refused for this reason. */
      readonly reason?: string | undefined;
      /** Received at this time or later. */
      readonly since?: string | undefined;
      /** Received before this time. */
      readonly until?: string | undefined;
      /** How many items. */
      readonly limit?: number | undefined;
      /** The cursor of the answer before. */
      readonly cursor?: string | undefined;
    };
    output: {
      readonly items: readonly Rejection[];
      /** Where the next page begins; absent on the last. A page may hold fewer items than the limit, or none, and still not be the last: on large tables one request looks through 100,000 rows at the most. */
      readonly cursor?: string | undefined;
    };
  };
  /** One refused request with what was kept of it. */
  getRejection: {
    input: {
      readonly id: string;
    };
    output: RejectionDetail;
  };
  /** Lists who did what, newest first. */
  listAudit: {
    input: {
      /** Only by this actor; `cli:*` means every actor that begins so. */
      readonly actor?: string | undefined;
      /** Only of this role; people means everything that no handler wrote. */
      readonly role?: "operator" | "system" | "handler" | "people" | undefined;
      /** Only this action; `job.*` means every action that begins so. */
      readonly action?: string | undefined;
      /** Only about this target. */
      readonly target?: string | undefined;
      /** Only of this tenant. */
      readonly tenant?: string | undefined;
      /** Done at this time or later. */
      readonly since?: string | undefined;
      /** Done before this time. */
      readonly until?: string | undefined;
      /** How many items. */
      readonly limit?: number | undefined;
      /** The cursor of the answer before. */
      readonly cursor?: string | undefined;
    };
    output: {
      readonly items: readonly AuditEntry[];
      /** Where the next page begins; absent on the last. A page may hold fewer items than the limit, or none, and still not be the last: on large tables one request looks through 100,000 rows at the most. */
      readonly cursor?: string | undefined;
    };
  };
  /** Counts events by source, type and outcome; of the last 24 hours where nothing else is said. */
  countTypes: {
    input: {
      /** Received at this time or later. */
      readonly since?: string | undefined;
      /** Received before this time. */
      readonly until?: string | undefined;
    };
    output: {
      readonly counted_until: string | null;
      /** Hours that are still to be counted, after the first start. */
      readonly hours_to_count: number;
      readonly items: readonly TypeCount[];
    };
  };
  /** Counts events by hour (UTC), source, type and outcome; at most 31 days. */
  countHours: {
    input: {
      /** Only of this source. */
      readonly source?: string | undefined;
      /** Only of this type. */
      readonly type?: string | undefined;
      /** Received at this time or later. */
      readonly since?: string | undefined;
      /** Received before this time. */
      readonly until?: string | undefined;
    };
    output: {
      readonly counted_until: string | null;
      /** Hours that are still to be counted, after the first start. */
      readonly hours_to_count: number;
      readonly items: readonly HourCount[];
    };
  };
  /** Lists hours in which a type came more or less often than usual, or fell silent; the last noticed first. */
  listAnomalies: {
    input: {
      /** Hours that began at this time or later. */
      readonly since?: string | undefined;
      /** Hours that began before this time. */
      readonly until?: string | undefined;
      /** How many items. */
      readonly limit?: number | undefined;
      /** The cursor of the answer before. */
      readonly cursor?: string | undefined;
    };
    output: {
      readonly items: readonly Anomaly[];
      /** Where the next page begins; absent on the last. A page may hold fewer items than the limit, or none, and still not be the last: on large tables one request looks through 100,000 rows at the most. */
      readonly cursor?: string | undefined;
    };
  };
  /** How long things are kept, and what the next pruning would remove. */
  previewRetention: { input: Record<string, undefined>; output: RetentionPreview };
  /** Removes the bodies of every event that carries a ref, what was sent because of them, and what errors may have taken from them. */
  eraseBodies: {
    input: {
      /** The subject's id, or kind:id. This, or an event. */
      readonly ref?: string | undefined;
      /** One event, by our id or by the sender's. */
      readonly event?: string | undefined;
      /** Also where jobs still need the body: unfinished ones are cancelled. */
      readonly include_unfinished?: boolean | undefined;
      /** Only say what would be removed. */
      readonly dry_run?: boolean | undefined;
      /** Why, in words. Kept in the audit. */
      readonly reason?: string | undefined;
    };
    output: Erasure;
  };
  /** Lists the data keys that bodies are sealed with, the oldest first. */
  listDataKeys: {
    input: Record<string, undefined>;
    output: {
      readonly items: readonly DataKey[];
    };
  };
  /** Lists the tokens, newest first. Secrets are not stored and cannot be shown. */
  listTokens: {
    input: Record<string, undefined>;
    output: {
      readonly items: readonly Token[];
    };
  };
  /** Makes a token; its secret is shown in this answer and never again. */
  createToken: {
    input: {
      /** For people: whose it is, and what for. */
      readonly name: string;
      /** What it allows; each includes those before it. */
      readonly scope: "read" | "operate" | "admin";
      /** Only these tenants' things. Left out: everything. */
      readonly tenants?: readonly string[] | undefined;
      /** Left out: until it is revoked. */
      readonly expires_in_seconds?: number | undefined;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: MadeToken;
  };
  /** Makes a token like it; both are good until the overlap is over. */
  rotateToken: {
    input: {
      readonly id: string;
      /** How long the old one stays good. */
      readonly overlap_seconds?: number | undefined;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: MadeToken;
  };
  /** Ends a token at once. */
  revokeToken: {
    input: {
      readonly id: string;
      /** Why, in words. Kept in the audit. */
      readonly reason: string;
    };
    output: TokenRevocation;
  };
}
/** Where each call goes. */
export const CALLS: {
  readonly [Id in keyof Calls]: {
    readonly method: string;
    readonly path: string;
    readonly query: readonly string[];
  };
} = {
  listEvents: {
    method: "GET",
    path: "/events",
    query: ["source", "type", "ref", "tenant", "status", "since", "until", "limit", "cursor"],
  },
  getEvent: { method: "GET", path: "/events/{id}", query: [] },
  getEventBody: { method: "GET", path: "/events/{id}/body", query: [] },
  routeEvents: { method: "POST", path: "/events/route", query: [] },
  listJobs: {
    method: "GET",
    path: "/jobs",
    query: [
      "state",
      "queue",
      "handler",
      "tenant",
      "key",
      "event",
      "worker",
      "since",
      "until",
      "limit",
      "cursor",
    ],
  },
  getJob: { method: "GET", path: "/jobs/{id}", query: [] },
  listDead: {
    method: "GET",
    path: "/dead",
    query: [
      "handler",
      "queue",
      "type",
      "source",
      "tenant",
      "ref",
      "event",
      "error_class",
      "death",
      "since",
      "until",
      "ids",
      "limit",
      "cursor",
    ],
  },
  groupDead: {
    method: "GET",
    path: "/dead/groups",
    query: [
      "handler",
      "queue",
      "type",
      "source",
      "tenant",
      "ref",
      "event",
      "error_class",
      "death",
      "since",
      "until",
      "ids",
    ],
  },
  getDead: { method: "GET", path: "/dead/{id}", query: [] },
  replayDead: { method: "POST", path: "/dead/replay", query: [] },
  dropDead: { method: "POST", path: "/dead/drop", query: [] },
  listOperations: { method: "GET", path: "/operations", query: ["state", "limit", "cursor"] },
  createOperation: { method: "POST", path: "/operations", query: [] },
  previewOperation: { method: "POST", path: "/operations/preview", query: [] },
  getOperation: { method: "GET", path: "/operations/{id}", query: [] },
  listOperationItems: { method: "GET", path: "/operations/{id}/items", query: ["state", "limit", "cursor"] },
  abortOperation: { method: "POST", path: "/operations/{id}/abort", query: [] },
  resumeOperation: { method: "POST", path: "/operations/{id}/resume", query: [] },
  listEffects: {
    method: "GET",
    path: "/effects",
    query: [
      "to",
      "kind",
      "state",
      "tenant",
      "target",
      "event",
      "dedupe",
      "destination",
      "since",
      "until",
      "limit",
      "cursor",
    ],
  },
  getEffect: { method: "GET", path: "/effects/{id}", query: [] },
  resolveEffect: { method: "POST", path: "/effects/{id}/resolve", query: [] },
  cancelEffect: { method: "POST", path: "/effects/{id}/cancel", query: [] },
  listSuppressions: { method: "GET", path: "/suppressions", query: ["address", "tenant", "limit", "cursor"] },
  addSuppression: { method: "POST", path: "/suppressions", query: [] },
  removeSuppression: { method: "POST", path: "/suppressions/remove", query: [] },
  listDestinations: { method: "GET", path: "/destinations", query: [] },
  pauseDestination: { method: "POST", path: "/destinations/pause", query: [] },
  resumeDestination: { method: "POST", path: "/destinations/resume", query: [] },
  listQueues: { method: "GET", path: "/queues", query: [] },
  pauseQueue: { method: "POST", path: "/queues/{name}/pause", query: [] },
  resumeQueue: { method: "POST", path: "/queues/{name}/resume", query: [] },
  listHandlers: { method: "GET", path: "/handlers", query: [] },
  removeHandler: { method: "POST", path: "/handlers/{name}/remove", query: [] },
  listWorkers: { method: "GET", path: "/workers", query: ["ended"] },
  listRejections: {
    method: "GET",
    path: "/rejections",
    query: ["source", "reason", "since", "until", "limit", "cursor"],
  },
  getRejection: { method: "GET", path: "/rejections/{id}", query: [] },
  listAudit: {
    method: "GET",
    path: "/audit",
    query: ["actor", "role", "action", "target", "tenant", "since", "until", "limit", "cursor"],
  },
  countTypes: { method: "GET", path: "/stats", query: ["since", "until"] },
  countHours: { method: "GET", path: "/stats/hours", query: ["source", "type", "since", "until"] },
  listAnomalies: { method: "GET", path: "/stats/anomalies", query: ["since", "until", "limit", "cursor"] },
  previewRetention: { method: "GET", path: "/retention", query: [] },
  eraseBodies: { method: "POST", path: "/erasures", query: [] },
  listDataKeys: { method: "GET", path: "/data-keys", query: [] },
  listTokens: { method: "GET", path: "/tokens", query: [] },
  createToken: { method: "POST", path: "/tokens", query: [] },
  rotateToken: { method: "POST", path: "/tokens/{id}/rotate", query: [] },
  revokeToken: { method: "POST", path: "/tokens/{id}/revoke", query: [] },
};
