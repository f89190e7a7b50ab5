// Counting events by the hour: find the hours that changed since the last count, then count each anew.
import type { Queryable } from "./postgres.ts";
import { holdsLock } from "./workers.ts";

/** A process that was killed counts anew; of several processes one counts, and the others need not. */
const LOCK = "ukemi.statistics";

/** Hides small steps of the clock, and the moment between the reading of a time and the number of its transaction. */
const MARGIN = "interval '1 minute'";

/** A transaction that commits later than this after its change is not waited for. */
const LATE_MAX = "interval '1 hour'";

/** How many notes one transaction takes. */
const NOTES_MOST = 10_000;

// Whatever the estimates say, only the pages of the time in question are looked at, and only the outcomes of its events.
const SETTINGS = `
select set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
  set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true),
  -- whoever does not say so knows nothing of plain successes: what it counts is noted, to be counted anew
  set_config('ukemi.counts_plain', 'on', true),
  -- below the time after which we would no longer wait: the server must stop too
  set_config('statement_timeout', '25s', true)`;

/** What came of looking for changes. */
export type Found = "busy" | "recent" | "found" | "more";

// The time is read before the snapshot of the search is taken: what is older than it has its transaction's number already.
const READ = `
select to_json(ukemi.now()) as at, to_json(all_until) as since,
  coalesce(found_until between ukemi.now() - $1 * interval '1 ms' and ukemi.now(), false)
    -- what the version before has looked for is still to be looked for
    and not exists (select from ukemi.miscounted_hours) as recent
from ukemi.counting`;

/** Everything, the first time. Ids are only about in the order of receipt: an hour more is looked at. */
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
union
-- of a plain success nothing is written but that its job is done
select date_trunc('hour', e.received_at, 'UTC')
from ukemi.jobs j
join ukemi.events e on e.id = j.event
where j.state = 'done' and j.finished_at >= $2::timestamptz - ${MARGIN}
on conflict do nothing`;

// The version before counts no plain successes, and may run beside this one.
const MISCOUNTED_HOURS = `
with noted as (
  delete from ukemi.miscounted_hours returning hour
)
insert into ukemi.stale_hours (hour) select hour from noted on conflict do nothing`;

const NOTED_HOURS = `
with noted as (
  delete from ukemi.outcome_changes
  where ctid = any(array(select ctid from ukemi.outcome_changes limit ${NOTES_MOST}))
  returning event
),
hours as (
  insert into ukemi.stale_hours (hour)
  select distinct date_trunc('hour', e.received_at, 'UTC')
  from noted
  join ukemi.events e on e.id = noted.event
  on conflict do nothing
)
select count(*)::int as count from noted`;

/**
 * Changes of transactions that were under way at the last search have been found by this one if all of them have ended, whoever
 * made the last one.
 */
const sureUntil = (column: string) => `
  ${column} = greatest(
    case when $2::xid8 >= found_xmax then found_until else ${column} end,
    $1::timestamptz - ${LATE_MAX}
  )`;

// Two times: the version before finds no plain successes, and moves only the first.
const REMEMBER = `
update ukemi.counting
set ${sureUntil("sure_until")},
  ${sureUntil("all_until")},
  found_until = $1::timestamptz,
  found_xmax = $3::xid8,
  running_since = case when found_until >= $1::timestamptz - interval '1 hour' then running_since else $1::timestamptz end`;

/**
 * Finds the hours whose events changed, and remembers them as stale. Must run in a transaction.
 * Does nothing where another process is at it, or somebody looked less than so many milliseconds ago.
 * "more" says that there are changes left for another call.
 */
export async function findStaleHours(client: Queryable, everyMs: number): Promise<Found> {
  if (!(await holdsLock(client, LOCK))) return "busy";
  const read = await client.query<{ at: string; since: string | null; recent: boolean }>(READ, [everyMs]);
  const { at, since, recent } = read.rows[0]!;
  if (recent) return "recent";
  await client.query(SETTINGS);
  const { rows } = await client.query<{ xmin: string; xmax: string }>(
    "select pg_snapshot_xmin(s)::text as xmin, pg_snapshot_xmax(s)::text as xmax from pg_current_snapshot() as s",
  );
  const { xmin, xmax } = rows[0]!;
  if (since === null) await client.query(ALL_HOURS, [at]);
  else await client.query(CHANGED_HOURS, [at, since]);
  const noted = await client.query<{ count: number }>(NOTED_HOURS);
  await client.query(MISCOUNTED_HOURS);
  await client.query(REMEMBER, [at, xmin, xmax]);
  return noted.rows[0]!.count === NOTES_MOST ? "more" : "found";
}

const NEXT_HOUR = "select to_json(s.hour) as hour from ukemi.stale_hours s order by s.hour desc limit 1";

const COUNT_HOUR = `
with counted as (
  select e.source, e.type, coalesce(e.tenant, '') as tenant,
    count(*) as received,
    count(*) filter (where o.status = 'success' or p.status = 'success') as success,
    count(*) filter (where o.status = 'failed') as failed,
    count(*) filter (where o.status = 'skipped') as skipped,
    count(*) filter (where o.status = 'unrouted') as unrouted,
    max(e.received_at) as last_received_at
  from ukemi.events e
  left join ukemi.event_outcomes o on o.event = e.id
  left join lateral ukemi.plain_success(case when o.event is null then e.id end) as p on true
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

const FINISH = "update ukemi.counting set counted_until = found_until";

/**
 * Counts the newest stale hour anew. Must run in a transaction.
 * "done" says that none was left: everything that was found has been counted.
 */
export async function countStaleHour(client: Queryable): Promise<"busy" | "counted" | "done"> {
  // two that count one hour at once could write the older of two counts last
  if (!(await holdsLock(client, LOCK))) return "busy";
  const { rows } = await client.query<{ hour: string }>(NEXT_HOUR);
  const hour = rows[0]?.hour;
  if (hour === undefined) {
    await client.query(FINISH);
    return "done";
  }
  await client.query(SETTINGS);
  await client.query(COUNT_HOUR, [hour]);
  return "counted";
}
