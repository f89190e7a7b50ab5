// Reading one job with all that was tried and done, so that the cause can be found.
import { ERASED_AT } from "./dead-filter.ts";
import { briefEffects, openBriefs, type BriefEffect, type StoredBrief } from "./effect-state.ts";
import { FACTS, type DeadLetter, type Times } from "./dead-letters.ts";
import { NO_KEYS, type Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";
import type { AttemptOutcome, EventStatus, JobState } from "./states.ts";

/** One try at a job. */
export interface ShownAttempt {
  readonly number: number;
  readonly outcome: AttemptOutcome;
  readonly error_class: string | null;
  readonly error_message: string | null;
  readonly error_stack: string | null;
  readonly started_at: string | null;
  readonly ended_at: string;
  readonly duration_ms: number | null;
  readonly worker: string | null;
  readonly trace_id: string | null;
}

/** What was done to a job, by whom and why. */
export interface ShownAct {
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly reason: string | null;
}

/** A job with everything that an operator needs to find the cause. */
export interface ShownJob extends Omit<DeadLetter, "died_at"> {
  readonly state: JobState;
  readonly key: string | null;
  readonly priority: number;
  /** How many tries it has, `attempts` among them. */
  readonly max_attempts: number;
  /** When it is or was due. */
  readonly run_at: string;
  readonly started_at: string | null;
  readonly finished_at: Date | null;
  /** The worker that holds it now. */
  readonly worker: string | null;
  readonly received_at: Date | null;
  readonly request_id: string | null;
  /** False where the event's body was pruned or erased: it cannot be replayed. */
  readonly has_body: boolean;
  /** When an operator erased it; null where none did. */
  readonly body_erased_at: string | null;
  /** What became of the event, with our own ids. */
  readonly outcome: {
    readonly status: EventStatus;
    readonly error_message: string | null;
    readonly processed_at: string | null;
    readonly billing_id: string | null;
    readonly office_id: string | null;
  } | null;
  /** The latest tries, oldest first. */
  readonly tries: readonly ShownAttempt[];
  /** The latest acts, oldest first. */
  readonly acts: readonly ShownAct[];
  /** The effects that it decided, or the one that it carries out. */
  readonly effects: readonly BriefEffect[];
}

const SHOW = `
select ${FACTS}, j.state, j.key, j.priority, j.max_attempts, to_json(j.run_at) as run_at, to_json(j.started_at) as started_at,
  to_json(j.finished_at) as finished_at, j.worker, to_json(e.received_at) as received_at, e.request_id,
  e.id is null
    or exists (select from ukemi.event_bodies b where b.event = e.id and b.received_at = e.received_at) as has_body,
  to_json(${ERASED_AT}) as body_erased_at,
  (
    select json_build_object('status', o.status, 'error_message', o.error_message, 'processed_at', o.processed_at,
      'billing_id', o.billing_id, 'office_id', o.office_id)
    from ukemi.outcome_of(e.id) as o
  ) as outcome,
  coalesce((
    select json_agg(json_build_object('number', t.number, 'outcome', t.outcome, 'error_class', t.error_class,
      'error_message', t.error_message, 'error_stack', t.error_stack, 'started_at', t.started_at,
      'ended_at', t.ended_at, 'duration_ms', t.duration_ms, 'worker', t.worker, 'trace_id', t.trace_id) order by t.id)
    from (
      select a.*
      from ukemi.attempts a
      where a.job = j.id
      order by a.id desc
      limit 50
    ) as t
  ), '[]') as tries,
  coalesce((
    select json_agg(json_build_object('at', t.at, 'actor', t.actor, 'action', t.action, 'reason', t.reason) order by t.id)
    from (
      select l.id, l.at, l.actor, l.action, l.details ->> 'reason' as reason
      from ukemi.audit_log l
      -- a handler may write of a target with the same name
      where l.target = j.id::text and l.action like 'job.%' and l.role <> 'handler'
      order by l.id desc
      limit 50
    ) as t
  ), '[]') as acts,
  ${briefEffects("e.cause = j.id or e.job = j.id")} as effects
from ukemi.jobs j
left join ukemi.events e on e.id = j.event
where j.id = $1::bigint and ($2::text[] is null or j.tenant = any($2::text[]))`;

/** Shows one job, dead or not. */
export async function showJob(
  client: Queryable,
  id: number,
  tenants?: readonly string[],
  keyring: Keyring = NO_KEYS,
): Promise<ShownJob | undefined> {
  type Row = Omit<Times<ShownJob, "created_at">, "finished_at" | "received_at" | "effects"> & {
    readonly effects: readonly StoredBrief[];
    readonly died_at: string | null;
    readonly finished_at: string | null;
    readonly received_at: string | null;
  };
  const { rows } = await client.query<Row>(SHOW, [id, tenants ?? null]);
  if (!rows[0]) return undefined;
  const { died_at: _, ...row } = rows[0];
  return {
    ...row,
    id: Number(row.id),
    effects: await openBriefs(client, keyring, row.effects),
    created_at: new Date(row.created_at),
    finished_at: row.finished_at === null ? null : new Date(row.finished_at),
    received_at: row.received_at === null ? null : new Date(row.received_at),
  };
}
