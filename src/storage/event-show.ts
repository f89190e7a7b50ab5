// One event with everything that is known of it: body, refs, outcome, jobs and their attempts.
import { findEvent, type ListedEvent } from "./event-list.ts";
import { briefEffects, openBriefs, type BriefEffect, type StoredBrief } from "./effect-state.ts";
import type { EventStatus, JobState } from "./states.ts";
import type { ShownAttempt } from "./job-show.ts";
import { NO_KEYS, type Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";

/** What became of an event, with our own ids. */
export interface ShownOutcome {
  readonly status: EventStatus;
  readonly error_message: string | null;
  readonly processed_at: string | null;
  readonly billing_id: string | null;
  readonly office_id: string | null;
}

/** A job of an event with the tries that did not simply succeed. */
export interface JobOfEvent {
  readonly id: number;
  readonly handler: string;
  readonly queue: string;
  readonly state: JobState;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly error_class: string | null;
  readonly error_message: string | null;
  readonly created_at: string;
  readonly finished_at: string | null;
  readonly tries: readonly ShownAttempt[];
}

/** An event as it is stored, beside its body. */
export interface StoredEvent extends Omit<ListedEvent, "jobs"> {
  readonly request_id: string | null;
  readonly traceparent: string | null;
  readonly secret_fingerprint: string | null;
  readonly body_sha256: string;
  readonly body_bytes: number;
  readonly outcome: ShownOutcome | null;
  readonly jobs: readonly JobOfEvent[];
  /** What it led to in the outside world. */
  readonly effects: readonly BriefEffect[];
}

const REST = `
select e.request_id, e.traceparent, e.secret_fingerprint, encode(e.body_sha256, 'hex') as body_sha256, e.body_bytes,
  (
    select json_build_object('status', o.status, 'error_message', o.error_message, 'processed_at', o.processed_at,
      'billing_id', o.billing_id, 'office_id', o.office_id)
    from ukemi.outcome_of(e.id) as o
  ) as outcome,
  coalesce((
    select json_agg(json_build_object('id', j.id, 'handler', j.subscription, 'queue', j.queue, 'state', j.state,
      'attempts', j.attempt, 'max_attempts', j.max_attempts, 'error_class', j.error_class,
      'error_message', j.error_message, 'created_at', j.created_at, 'finished_at', j.finished_at,
      'tries', coalesce((
        select json_agg(json_build_object('number', t.number, 'outcome', t.outcome, 'error_class', t.error_class,
          'error_message', t.error_message, 'error_stack', t.error_stack, 'started_at', t.started_at,
          'ended_at', t.ended_at, 'duration_ms', t.duration_ms, 'worker', t.worker, 'trace_id', t.trace_id) order by t.id)
        from (select a.* from ukemi.attempts a where a.job = j.id order by a.id desc limit 50) as t
      ), '[]'::json)) order by j.id)
    from ukemi.jobs j
    where j.event = e.id
  ), '[]') as jobs,
  ${briefEffects("e.event = $1::uuid")} as effects
from ukemi.events e
where e.id = $1::uuid`;

/** Finds one event by our id or by the sender's; with tenants, only among theirs. */
export async function showEvent(
  client: Queryable,
  id: string,
  tenants?: readonly string[],
  keyring: Keyring = NO_KEYS,
): Promise<StoredEvent | undefined> {
  const event = await findEvent(client, id, tenants);
  if (!event) return undefined;
  type Rest = Omit<StoredEvent, keyof Omit<ListedEvent, "jobs"> | "effects">;
  const { rows } = await client.query<Rest & { readonly effects: readonly StoredBrief[] }>(REST, [event.id]);
  const rest = rows[0]!;
  return { ...event, ...rest, effects: await openBriefs(client, keyring, rest.effects) };
}
