// Rescue: jobs are taken from workers that are gone, and from leases that have lapsed.
import { isAlive, LOCKED_NUMBERS } from "./live-workers.ts";
import type { Queryable } from "./postgres.ts";
import type { Death } from "./states.ts";
import { mayHaveBegun, PLACES } from "./begun.ts";

/** How long a worker whose lock is free may take to come back before its jobs are taken: a restart of the server is no crash. */
const GRACE_MS = 1000;

/** A job that was running in a process that died is claimed alone; so many more deaths end it. */
const CRASHES_ALONE_MAX = 3;

/**
 * A worker that was heard of since a lease lapsed could not extend it because the row was locked: by a commit that nobody has heard
 * the end of, and behind which the worker waits to ask. The row is its own for so much longer, which is how long it waits.
 */
const LOCKED_MS = 15_000;

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
with locks as materialized (${LOCKED_NUMBERS}),
looked_at as (
  select w.id, w.missing_since, ${isAlive("select number from locks")} as lives
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
with places as materialized (${PLACES}),
gone as (
  select j.id, j.worker, j.started_at,
    -- one that had not begun cannot have killed its worker, nor one whose worker lived to say goodbye
    ${mayHaveBegun("j")} and not exists (
      select from ukemi.workers w where w.id = j.worker and w.end_reason in ('stopped', 'replaced')
    ) as ran
  from ukemi.jobs j
  where j.state = 'running'
    and (
      exists (select from ukemi.workers w where w.id = j.worker and w.ended_at is not null)
      or j.lease_until < ukemi.now() and not exists (
        -- it was just missed and may come back: after a time without the database every lease has lapsed
        select from ukemi.workers w
        where w.id = j.worker and w.ended_at is null
          and (
            w.missing_since is not null
            or w.seen_at >= j.lease_until and j.lease_until > ukemi.now() - $1 * interval '1 ms'
          )
      )
    )
  -- those that were claimed last come first: the places of those that are left must stay what they are
  order by j.started_at desc, j.id desc
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
    started_at = case when gone.ran then j.started_at end,
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
  const { rows } = await client.query<Rescued>(RESCUE, [LOCKED_MS]);
  return rows;
}
