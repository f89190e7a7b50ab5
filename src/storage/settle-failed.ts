// Settling a try that failed: tried again, waiting for something, or dead; under the fence of its lease.
import type { Lease } from "./claim.ts";
import type { Queryable } from "./postgres.ts";
import { LeaseLost, type Try } from "./settle.ts";
import type { Death } from "./states.ts";

/** An error as it is kept: redacted and bounded. */
export interface KeptError {
  readonly class: string;
  readonly message: string;
  readonly stack: string | null;
}

/** What follows from a failed try. */
export type Failure =
  | { readonly next: "retry"; readonly delayMs: number; readonly error: KeptError }
  | {
      readonly next: "wait";
      readonly withinMs: number;
      /** How long until it looks again. @default as long as it has waited so far, from one second to a minute */
      readonly delayMs?: number;
      readonly error: KeptError;
    }
  | { readonly next: "die"; readonly death: Death; readonly error: KeptError };

const FAILED = `
with verdict as (
  select
    j.id,
    case
      when $3 = 'die' then $4
      -- what it waits for is overdue
      when $3 = 'wait' and coalesce(j.not_yet_since, m.at) + $6 * interval '1 ms' <= m.at then 'overdue'
    end as death,
    m.at,
    -- waits as long again as it has waited so far, from one second to a minute, and looks once more at the end
    case
      when $3 = 'retry' then m.at + $5 * interval '1 ms'
      else least(
        m.at + coalesce(
          $13::float8 * interval '1 ms',
          greatest(interval '1 s', least(interval '60 s', m.at - coalesce(j.not_yet_since, m.at)))
        ),
        coalesce(j.not_yet_since, m.at) + $6 * interval '1 ms'
      )
    end as next_at
  from ukemi.jobs j, (select ukemi.now() as at) as m
  where j.id = $1::bigint and j.lease_token = $2::uuid and j.state = 'running'
  for update of j
),
fenced as (
  update ukemi.jobs j
  set state = case when v.death is null then 'scheduled' else 'dead' end,
    attempt = j.attempt + case when $3 = 'wait' then 0 else 1 end,
    run_at = case when v.death is null then v.next_at else j.run_at end,
    finished_at = case when v.death is not null then v.at end,
    death = v.death,
    not_yet_since = case when $3 = 'wait' then coalesce(j.not_yet_since, v.at) end,
    lease_until = null, lease_token = null, worker = null,
    key_held = j.key_held and j.ordered and v.death is null,
    error_class = $7, error_message = $8, returns = 0
  from verdict v
  where j.id = v.id
  returning j.id, j.event, j.subscription, j.tenant, j.attempt, j.started_at, j.death, v.at
),
tries as (
  insert into ukemi.attempts (
    job, number, outcome, error_class, error_message, error_stack, started_at, duration_ms, worker, trace_id
  )
  select id, attempt + case when $3 = 'wait' then 1 else 0 end,
    case when death is not null then 'dead' when $3 = 'wait' then 'not_yet' else 'retry' end,
    $7, $8, $9, started_at, $10, $11::uuid, $12
  from fenced
),
outcome as (
  insert into ukemi.event_outcomes (event, status, error_message, processed_at)
  select event, 'failed', $8, at
  from fenced
  where death is not null and event is not null
  on conflict (event) do update
  set status = 'failed', error_message = excluded.error_message, processed_at = excluded.processed_at
),
audits as (
  insert into ukemi.audit_log (actor, role, action, target, tenant, details)
  select 'ukemi', 'system', 'job.dead', id::text, tenant,
    jsonb_build_object('handler', subscription, 'event', event, 'death', death, 'error_class', $7::text)
  from fenced
  where death is not null
)
select death from fenced`;

/** Writes down a failed try and what follows. Returns why the job is dead, null where it lives, or LeaseLost. */
export async function settleFailed(
  client: Queryable,
  lease: Lease,
  failure: Failure,
  attempt: Try,
): Promise<Death | null> {
  const { rows } = await client.query<{ death: Death | null }>(FAILED, [
    lease.id,
    lease.token,
    failure.next,
    failure.next === "die" ? failure.death : null,
    failure.next === "retry" ? failure.delayMs : 0,
    failure.next === "wait" ? failure.withinMs : 0,
    failure.error.class,
    failure.error.message,
    failure.error.stack,
    attempt.durationMs,
    attempt.worker,
    attempt.traceId,
    failure.next === "wait" ? (failure.delayMs ?? null) : null,
  ]);
  if (!rows[0]) throw new LeaseLost();
  return rows[0].death;
}
