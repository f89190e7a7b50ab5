// What processes of the version before schema 17 send: they run beside this one until the last of them has stopped.
import { randomUUID } from "node:crypto";
import { transaction, type Pool, type Queryable } from "../../src/storage/postgres.ts";

/** A job as that version holds it. */
export interface HeldJob {
  readonly id: string;
  readonly token: string;
}

const WORKER = "00000000-0000-7000-8000-000000000016";

/** Claims every job of a handler. */
export async function claimAs16(pool: Pool, handler: string): Promise<HeldJob[]> {
  const token = randomUUID();
  const { rows } = await pool.query<{ id: string }>(
    "select id from ukemi.claim_jobs('default', array[$1], 100, false, '', $2::uuid, $3::uuid, 600000)",
    [handler, WORKER, token],
  );
  return rows.map(({ id }) => ({ id, token }));
}

/** Completes jobs whose handlers wrote nothing. */
export async function settleManyAs16(pool: Pool, jobs: readonly HeldJob[]): Promise<void> {
  await pool.query("select lost from ukemi.settle_many($1, $2, $3, $4, $5) as lost", [
    jobs.map(({ id }) => id),
    jobs.map(({ token }) => token),
    jobs.map(() => 1),
    jobs.map(() => null),
    WORKER,
  ]);
}

/** Completes jobs of handlers with `sharedCommit` that linked this billing. */
export async function settleTogetherAs16(
  pool: Pool,
  jobs: readonly HeldJob[],
  billing: string,
): Promise<void> {
  await pool.query("select ukemi.settle_together($1, $2, $3, $4, $5, $6, $7, $8, $9) as settled", [
    jobs.map(({ id }) => id),
    jobs.map(({ token }) => token),
    jobs.map(() => billing),
    jobs.map(() => null),
    null,
    null,
    jobs.map(() => 1),
    jobs.map(() => null),
    WORKER,
  ]);
}

// Counting: the statements of that version, word for word but for the notes of outcomes that are pending again.

const MARGIN = "interval '1 minute'";
const LATE_MAX = "interval '1 hour'";

const ALL_HOURS = `
insert into ukemi.stale_hours (hour)
select hour
from (select received_at from ukemi.events order by id limit 1) as e
cross join generate_series(
  date_trunc('hour', e.received_at, 'UTC') - interval '1 hour', $1::timestamptz, interval '1 hour'
) as hour
on conflict do nothing`;

const CHANGED_HOURS = `
insert into ukemi.stale_hours (hour)
-- new events: they are only ever received now
select hour
from generate_series(date_trunc('hour', $2::timestamptz - ${MARGIN}, 'UTC'), $1::timestamptz, interval '1 hour') as hour
union
select date_trunc('hour', e.received_at, 'UTC')
from ukemi.event_outcomes o
join ukemi.events e on e.id = o.event
where o.processed_at >= $2::timestamptz - ${MARGIN}
on conflict do nothing`;

// Changes of transactions that were under way at the last search have been found by this one if all of them have ended.
const REMEMBER = `
update ukemi.counting
set sure_until = greatest(
    case when $2::xid8 >= found_xmax then found_until else sure_until end,
    $1::timestamptz - ${LATE_MAX}
  ),
  found_until = $1::timestamptz,
  found_xmax = $3::xid8,
  running_since = case when found_until >= $1::timestamptz - interval '1 hour' then running_since else $1::timestamptz end`;

const COUNT_HOUR = `
with counted as (
  select e.source, e.type, coalesce(e.tenant, '') as tenant,
    count(*) as received,
    count(*) filter (where o.status = 'success') as success,
    count(*) filter (where o.status = 'failed') as failed,
    count(*) filter (where o.status = 'skipped') as skipped,
    count(*) filter (where o.status = 'unrouted') as unrouted,
    max(e.received_at) as last_received_at
  from ukemi.events e
  left join ukemi.event_outcomes o on o.event = e.id
  where e.received_at >= $1::timestamptz and e.received_at < $1::timestamptz + interval '1 hour'
  group by 1, 2, 3
),
written as (
  insert into ukemi.event_hours as h (
    source, type, hour, tenant, received, success, failed, skipped, unrouted, last_received_at
  )
  select source, type, $1::timestamptz, tenant, received, success, failed, skipped, unrouted, last_received_at
  from counted
  on conflict (source, type, hour, tenant) do update
  set received = excluded.received, success = excluded.success, failed = excluded.failed,
    skipped = excluded.skipped, unrouted = excluded.unrouted, last_received_at = excluded.last_received_at
  -- two who count at once: the one that saw more wins, for an hour never becomes smaller
  where excluded.received >= h.received
    and (excluded.received, excluded.success, excluded.failed, excluded.skipped, excluded.unrouted)
      is distinct from (h.received, h.success, h.failed, h.skipped, h.unrouted)
)
delete from ukemi.stale_hours where hour = $1::timestamptz`;

/** Its search for hours that changed. */
export async function findAs16(pool: Pool): Promise<void> {
  await transaction(pool, async (client) => {
    if (!(await lockAs16(client))) return;
    const { rows } = await client.query<{ at: string; since: string | null; xmin: string; xmax: string }>(
      `select to_json(ukemi.now()) as at, to_json(sure_until) as since,
         pg_snapshot_xmin(pg_current_snapshot())::text as xmin, pg_snapshot_xmax(pg_current_snapshot())::text as xmax
       from ukemi.counting`,
    );
    const { at, since, xmin, xmax } = rows[0]!;
    if (since === null) await client.query(ALL_HOURS, [at]);
    else await client.query(CHANGED_HOURS, [at, since]);
    await client.query(REMEMBER, [at, xmin, xmax]);
  });
}

/** Its count of the newest hour that changed; false where there was none. */
export function countHourAs16(pool: Pool): Promise<boolean> {
  return transaction(pool, async (client) => {
    if (!(await lockAs16(client))) return false;
    const { rows } = await client.query<{ hour: string }>(
      "select to_json(s.hour) as hour from ukemi.stale_hours s order by s.hour desc limit 1",
    );
    if (rows[0]) await client.query(COUNT_HOUR, [rows[0].hour]);
    return rows[0] !== undefined;
  });
}

/** Its whole round. */
export async function countAs16(pool: Pool): Promise<void> {
  await findAs16(pool);
  while (await countHourAs16(pool));
}

async function lockAs16(client: Queryable): Promise<boolean> {
  const { rows } = await client.query<{ held: boolean }>(
    "select pg_try_advisory_xact_lock(hashtextextended('ukemi.statistics', 0)) as held",
  );
  return rows[0]!.held;
}
