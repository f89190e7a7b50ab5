// Workers: who is at work, whose leases live, and what is taken from those that are gone.
import type { Lease } from "./claim.ts";
import type { Queryable } from "./postgres.ts";
import type { Death } from "./settle.ts";

/** The class of our session locks: the four letters of "ukem". */
export const WORKER_LOCKS = 0x756b656d;

/** How long a worker whose lock is free may take to come back before its jobs are taken: a restart of the server is no crash. */
const GRACE_MS = 1000;

/** A job that was running in a process that died is claimed alone; so many more deaths end it. */
const CRASHES_ALONE_MAX = 3;

export interface NewWorker {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly handlers: readonly string[];
  readonly queues: readonly string[];
  readonly hasSession: boolean;
  readonly leaseMs: number;
}

/** Registers a worker. Returns the number that its session locks. */
export async function registerWorker(client: Queryable, worker: NewWorker): Promise<number> {
  const { rows } = await client.query<{ number: number }>(
    `with forgotten as (
       delete from ukemi.workers where ended_at < ukemi.now() - interval '30 days'
     )
     insert into ukemi.workers (id, host, pid, version, handlers, queues, has_session, lease_ms)
     values ($1, $2, $3, $4, $5, $6, $7, $8)
     returning number`,
    [
      worker.id,
      worker.host,
      worker.pid,
      worker.version,
      worker.handlers,
      worker.queues,
      worker.hasSession,
      worker.leaseMs,
    ],
  );
  return rows[0]!.number;
}

/** Ends a worker that is alive to say so, and gives back what it still holds: no crash, no attempt burnt. */
export async function endWorker(
  client: Queryable,
  worker: string,
  reason: "stopped" | "replaced",
): Promise<number> {
  const { rowCount } = await client.query(
    `with ended as (
       update ukemi.workers
       set ended_at = ukemi.now(), end_reason = $2
       where id = $1 and ended_at is null
     ),
     held as (
       -- a row that is locked is being settled at this moment: if that fails, whoever looks for lost jobs finds it
       select id from ukemi.jobs where worker = $1 and state = 'running' for update skip locked
     ),
     given as (
       update ukemi.jobs j
       set state = 'ready', lease_until = null, lease_token = null, worker = null
       from held
       where j.id = held.id
       returning j.id, j.attempt, j.started_at
     )
     insert into ukemi.attempts (job, number, outcome, error_class, error_message, started_at, worker)
     select id, attempt + 1, 'returned', 'Returned',
       case $2 when 'stopped' then 'the worker was stopped' else 'the worker lost its connection' end,
       started_at, $1
     from given
     where started_at is not null`,
    [worker, reason],
  );
  return rowCount ?? 0;
}

export interface Extension {
  readonly leases: readonly Lease[];
  /** Every token under which the worker holds jobs, or may. */
  readonly tokens: readonly string[];
  /** A token newer than those: what is claimed meanwhile is none of this. */
  readonly before: string;
  readonly leaseMs: number;
}

const EXTEND = `
with seen as (
  update ukemi.workers set seen_at = ukemi.now(), missing_since = null where id = $1
),
held as materialized (
  select id, token from unnest($2::bigint[], $3::uuid[]) as l (id, token)
),
extended as (
  update ukemi.jobs
  set lease_until = ukemi.now() + $4 * interval '1 ms'
  where id in (
    -- a row that is locked is being settled at this moment
    select j.id
    from ukemi.jobs j
    join held on j.id = held.id and j.lease_token = held.token
    where j.state = 'running'
    for update of j skip locked
  )
),
strangers as (
  select j.id
  from ukemi.jobs j
  where j.worker = $1 and j.state = 'running' and j.lease_token <> all($5::uuid[])
    and j.lease_token < $6::uuid and j.lease_until < ukemi.now() + ($4 - 1000) * interval '1 ms'
  for update of j skip locked
),
given_back as (
  update ukemi.jobs j
  set state = 'ready', lease_until = null, lease_token = null, worker = null, started_at = null
  from strangers
  where j.id = strangers.id
)
select j.id
from ukemi.jobs j
join held on j.id = held.id and j.lease_token = held.token`;

/**
 * Extends the leases. Returns those that are still ours; the others were taken away. What is ours by the database and
 * unknown to us was claimed by a statement whose answer was lost, and is given back.
 */
export async function extendLeases(
  client: Queryable,
  worker: string,
  { leases, tokens, before, leaseMs }: Extension,
): Promise<Set<string>> {
  const { rows } = await client.query<{ id: string }>(EXTEND, [
    worker,
    leases.map((lease) => lease.id),
    leases.map((lease) => lease.token),
    leaseMs,
    tokens,
    before,
  ]);
  return new Set(rows.map((row) => row.id));
}

/** A job that was taken from a worker that is gone. */
export interface Rescued {
  readonly id: string;
  readonly queue: string;
  readonly handler: string;
  readonly event_id: string | null;
  readonly tenant: string | null;
  readonly worker: string;
  readonly recoveries: number;
  readonly death: Death | null;
}

const FIND_LOST = `
with locks as materialized (
  select l.objid::bigint as number
  from pg_locks l
  where l.locktype = 'advisory' and l.classid::bigint = ${WORKER_LOCKS} and l.objsubid = 2 and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
),
looked_at as (
  -- without a session to look at, one that has not been heard of for a lease is missing
  select w.id, w.missing_since,
    case
      when w.has_session then w.number in (select number from locks)
      else w.seen_at > ukemi.now() - w.lease_ms * interval '1 ms'
    end as lives
  from ukemi.workers w
  where w.ended_at is null
),
judged as (
  select id, lives, missing_since,
    not lives and missing_since <= ukemi.now() - $1 * interval '1 ms' as is_lost
  from looked_at
)
update ukemi.workers w
set missing_since = case when not j.lives then coalesce(j.missing_since, ukemi.now()) end,
  ended_at = case when j.is_lost then ukemi.now() end,
  end_reason = case when j.is_lost then 'lost' end
from judged j
where w.id = j.id and (not j.lives or j.missing_since is not null)`;

const RESCUE = `
with gone as (
  select j.id, j.worker, j.started_at,
    -- one that had not started cannot have killed its worker, nor one whose worker lived to say goodbye
    j.started_at is not null and not exists (
      select from ukemi.workers w where w.id = j.worker and w.end_reason in ('stopped', 'replaced')
    ) as ran
  from ukemi.jobs j
  where j.state = 'running'
    and (
      exists (select from ukemi.workers w where w.id = j.worker and w.ended_at is not null)
      or j.lease_until < ukemi.now() and not exists (
        -- it was just missed and may come back: after a time without the database every lease has lapsed
        select from ukemi.workers w where w.id = j.worker and w.ended_at is null and w.missing_since is not null
      )
    )
  order by j.lease_until
  limit 500
  -- a row that is locked is being settled at this moment
  for update of j skip locked
),
taken as (
  update ukemi.jobs j
  set state = case when gone.ran and j.recoveries >= ${CRASHES_ALONE_MAX} then 'dead' else 'ready' end,
    recoveries = j.recoveries + gone.ran::int,
    death = case when gone.ran and j.recoveries >= ${CRASHES_ALONE_MAX} then 'crashed' end,
    finished_at = case when gone.ran and j.recoveries >= ${CRASHES_ALONE_MAX} then ukemi.now() end,
    key_held = j.key_held and not (gone.ran and j.recoveries >= ${CRASHES_ALONE_MAX}),
    lease_until = null, lease_token = null, worker = null,
    error_class = 'WorkerLost', error_message = 'the process that ran it died, or did not extend its lease'
  from gone
  where j.id = gone.id
  returning j.id, j.queue, j.key, j.subscription, j.event, j.tenant, j.attempt, j.recoveries, j.death,
    j.error_message, gone.worker, gone.started_at, gone.ran
),
tries as (
  insert into ukemi.attempts (job, number, outcome, error_class, error_message, started_at, worker)
  select id, attempt + 1, 'crashed', 'WorkerLost', error_message, started_at, worker
  from taken
  where ran
),
outcome as (
  insert into ukemi.event_outcomes (event, status, error_message, processed_at)
  select event, 'failed', error_message, ukemi.now()
  from taken
  where death is not null and event is not null
  on conflict (event) do update
  set status = 'failed', error_message = excluded.error_message, processed_at = excluded.processed_at
),
audits as (
  insert into ukemi.audit_log (actor, role, action, target, tenant, details)
  select 'ukemi', 'system', 'job.dead', id::text, tenant,
    jsonb_build_object('handler', subscription, 'event', event, 'death', death, 'error_class', 'WorkerLost')
  from taken
  where death is not null
)
select t.id, t.queue, t.subscription as handler, e.event_id, t.tenant, t.worker, t.recoveries, t.death
from taken t
left join ukemi.events e on e.id = t.event`;

/** Finds workers whose session is gone, and takes the jobs of those and of lapsed leases. Returns what was taken. */
export async function rescueJobs(client: Queryable): Promise<readonly Rescued[]> {
  await client.query(FIND_LOST, [GRACE_MS]);
  const { rows } = await client.query<Rescued>(RESCUE);
  return rows;
}

/** True for the one transaction that has this lock now: one process at a time is enough for a duty. */
export async function holdsLock(client: Queryable, name: string): Promise<boolean> {
  const { rows } = await client.query<{ held: boolean }>(
    "select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as held",
    [name],
  );
  return rows[0]!.held;
}

/** How many workers live, beside the given one. */
export async function countWorkers(client: Queryable, except: string | null): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    "select count(*)::int as count from ukemi.workers where ended_at is null and id is distinct from $1",
    [except],
  );
  return rows[0]!.count;
}
