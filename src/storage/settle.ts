// Settling a try that succeeded: outcome, links, audit and completion, under the fence of its lease.
import type { Job, Lease } from "./claim.ts";
import { sqlState } from "./faults.ts";
import type { Queryable } from "./postgres.ts";

/** One statement with rows: what an ORM's transaction can do too. */
export type RunSql = (text: string, values: unknown[]) => Promise<unknown>;

/** A line for the audit that a handler asked for. */
export interface AuditEntry {
  readonly action: string;
  readonly target: string | null;
  readonly details: Readonly<Record<string, unknown>>;
  /** The same key is written once. */
  readonly dedupeKey: string;
}

/** What a handler leaves behind beside its own writes. */
export interface Trail {
  readonly audits: readonly AuditEntry[];
  /** Our own ids of what the event is about, by kind: `billing`, `office`, `tenant`, `payment` … */
  readonly links: ReadonlyMap<string, string>;
}

/** How a try went, for the record. */
export interface Try {
  readonly durationMs: number;
  readonly worker: string;
  readonly traceId: string | null;
}

/** Thrown where the lease was lost: the transaction must be rolled back. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";
  constructor() {
    super("the lease was lost: another worker has the job, or an operator took it away");
  }
}

/** The name under which a handler's transaction knows which job it belongs to. */
export const JOB_SETTING = "ukemi.job";

export function jobSetting({ id, token }: Lease): string {
  return `${id}/${token}`;
}

/**
 * What the jobs of an event come to: a dead one makes it failed, an unfinished one pending, else it is a success.
 * `done` names the jobs that this statement settles; the snapshot still shows them running.
 */
const statusOf = (event: string, done: string) => `
  select case
    when bool_or(s.state = 'dead') then 'failed'
    when bool_or(s.state in ('scheduled', 'ready', 'waiting', 'running')) then 'pending'
    else 'success'
  end
  from ukemi.jobs s
  where s.event = ${event} and s.id <> ${done}`;

const DONE = `
with fenced as (
  update ukemi.jobs
  set state = 'done', attempt = attempt + 1, finished_at = ukemi.now(),
    lease_until = null, lease_token = null, worker = null, key_held = false,
    error_class = null, error_message = null, not_yet_since = null, returns = 0
  where id = $1::bigint and lease_token = $2::uuid and state = 'running'
    -- a transaction that the handler ended itself is not the one that we opened
    and ($3::text is null or current_setting('${JOB_SETTING}', true) = $3::text)
  returning id, event, subscription, tenant, attempt, recoveries, started_at
),
outcome as (
  insert into ukemi.event_outcomes (event, status, processed_at, billing_id, office_id)
  select event, status, case when status <> 'pending' then ukemi.now() end, $4::text, $5::text
  from (select f.event, (${statusOf("f.event", "f.id")}) as status from fenced f where f.event is not null) as f
  where status <> 'pending' or $4::text is not null or $5::text is not null
  on conflict (event) do update
  -- pending is only what our snapshot shows: a sibling that died since has said failed
  set status = case when excluded.status = 'pending' then event_outcomes.status else excluded.status end,
    processed_at = coalesce(excluded.processed_at, event_outcomes.processed_at),
    error_message = case when excluded.status <> 'success' then event_outcomes.error_message end,
    billing_id = coalesce(excluded.billing_id, event_outcomes.billing_id),
    office_id = coalesce(excluded.office_id, event_outcomes.office_id)
),
refs as (
  insert into ukemi.event_refs (event, kind, ref)
  select f.event, r.kind, r.ref
  from fenced f, jsonb_to_recordset($6::jsonb) as r (kind text, ref text)
  where f.event is not null
  on conflict do nothing
),
audits as (
  insert into ukemi.audit_log (actor, role, action, target, tenant, details, dedupe_key)
  select f.subscription, 'handler', a.action, a.target, f.tenant, a.details, a.dedupe_key
  from fenced f, jsonb_to_recordset($7::jsonb) as a (action text, target text, details jsonb, dedupe_key text)
  on conflict (dedupe_key) do nothing
),
tries as (
  insert into ukemi.attempts (job, number, outcome, started_at, duration_ms, worker, trace_id)
  select id, attempt, 'done', started_at, $8::float8, $9::uuid, $10::text
  from fenced
  where attempt > 1 or recoveries > 0
)
-- raises where the fence failed: the COMMIT behind it then rolls back, whether or not anyone looked
select 1 / count(*)::int as settled from fenced`;

/**
 * Completes a job inside the handler's transaction: outcome, links, audit and completion, or LeaseLost.
 * `within` is the transaction's own mark, null where no other statement ran before this one.
 */
export async function settleDone(
  run: RunSql,
  job: Job,
  done: { readonly trail: Trail; readonly attempt: Try; readonly within: string | null },
): Promise<void> {
  const { trail, attempt, within } = done;
  // two handlers of one event that finish at once must see each other, else neither calls it a success
  if (job.event && job.siblings > 1) await lockOutcome(run, job.event.id);
  try {
    await run(DONE, [
      job.id,
      job.token,
      within,
      trail.links.get("billing") ?? null,
      trail.links.get("office") ?? trail.links.get("tenant") ?? null,
      JSON.stringify([...trail.links].map(([kind, ref]) => ({ kind, ref }))),
      JSON.stringify(
        trail.audits.map(({ action, target, details, dedupeKey }) => ({
          action,
          target,
          details,
          dedupe_key: dedupeKey,
        })),
      ),
      attempt.durationMs,
      attempt.worker,
      attempt.traceId,
    ]);
  } catch (error) {
    throw sqlState(error) === "22012" ? new LeaseLost() : error;
  }
}

async function lockOutcome(run: RunSql, event: string): Promise<void> {
  await run("select pg_advisory_xact_lock(hashtextextended('ukemi.outcome' || $1::text, 0))::text", [event]);
}

const DONE_MANY = `
with fenced as (
  update ukemi.jobs j
  set state = 'done', attempt = attempt + 1, finished_at = ukemi.now(),
    lease_until = null, lease_token = null, worker = null, key_held = false,
    error_class = null, error_message = null, not_yet_since = null, returns = 0
  from unnest($1::bigint[], $2::uuid[], $3::float8[], $4::text[]) as d (id, token, duration_ms, trace_id)
  where j.id = d.id and j.lease_token = d.token and j.state = 'running'
  returning j.id, j.event, j.attempt, j.recoveries, j.started_at, d.duration_ms, d.trace_id
),
outcome as (
  insert into ukemi.event_outcomes (event, status, processed_at)
  select event, 'success', ukemi.now()
  from fenced
  where event is not null
  on conflict (event) do update
  set status = excluded.status, processed_at = excluded.processed_at, error_message = null
),
tries as (
  insert into ukemi.attempts (job, number, outcome, started_at, duration_ms, worker, trace_id)
  select id, attempt, 'done', started_at, duration_ms, $5::uuid, trace_id
  from fenced
  where attempt > 1 or recoveries > 0
)
select id from fenced`;

/** A job whose handler wrote nothing through its transaction. */
export interface Completion {
  readonly job: Job;
  readonly attempt: Try;
}

/** Completes many at once, each the only job of its event. Returns the ids; one that is missing lost its lease. */
export async function settleManyDone(
  client: Queryable,
  worker: string,
  completions: readonly Completion[],
): Promise<Set<string>> {
  const { rows } = await client.query<{ id: string }>(DONE_MANY, [
    completions.map(({ job }) => job.id),
    completions.map(({ job }) => job.token),
    completions.map(({ attempt }) => attempt.durationMs),
    completions.map(({ attempt }) => attempt.traceId),
    worker,
  ]);
  return new Set(rows.map((row) => row.id));
}
