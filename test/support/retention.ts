// A store with a past: events and jobs that are moved back in time, and ways to see what of them is left.
import { createOperate } from "../../src/operate/operate.ts";
import type { Retention } from "../../src/operate/retention.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import type { RetentionLimits } from "../../src/storage/retention.ts";

export const LIMITS: RetentionLimits = { bodyDays: 90, attemptDays: 30, jobDays: 30, effectDays: 90 };

export function retentionOn(pool: Pool, limits: Partial<RetentionLimits> = {}): Retention {
  return createOperate({ open: () => Promise.resolve(pool), limits: { ...LIMITS, ...limits } }).retention;
}

/** Lets so many days pass. */
export async function letPass(pool: Pool, days: number): Promise<void> {
  await pool.query("update ukemi.clock set shift = shift + $1 * interval '1 day'", [days]);
  await pool.query("select ukemi.make_body_months(1)");
}

/** Ends the jobs of these events as a worker would; without ids, every job that is ready. */
export async function finishJobs(
  pool: Pool,
  eventIds?: readonly string[],
  state: "done" | "cancelled" = "done",
): Promise<void> {
  await pool.query(
    `with ended as (
       update ukemi.jobs j
       set state = $2, finished_at = ukemi.now(), attempt = 1
       where j.state = 'ready'
         and ($1::text[] is null or j.event in (select id from ukemi.events where event_id = any($1)))
       returning j.event, j.id
     ),
     tries as (
       insert into ukemi.attempts (job, number, outcome) select id, 1, 'done' from ended
     )
     insert into ukemi.event_outcomes (event, status, processed_at)
     -- of jobs that are done nothing more is written
     select distinct on (event) event, 'success', ukemi.now() from ended where event is not null and $2 <> 'done'
     on conflict (event) do update set status = 'success'`,
    [eventIds ?? null, state],
  );
}

/** The events whose body is there. */
export async function bodiesOf(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ event_id: string }>(
    `select e.event_id from ukemi.events e
     join ukemi.event_bodies b on b.event = e.id and b.received_at = e.received_at
     order by 1`,
  );
  return rows.map((row) => row.event_id);
}

export async function countRows(pool: Pool, table: string): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(`select count(*)::int as count from ukemi.${table}`);
  return rows[0]!.count;
}

/** The partitions of bodies, with the triggers of each and whether they also hold in a replication session. */
export async function monthsOf(pool: Pool): Promise<readonly { table: string; triggers: string }[]> {
  const { rows } = await pool.query<{ table: string; triggers: string }>(
    `select c.relname as table,
       (select string_agg(t.tgname || ':' || t.tgenabled::text, ' ' order by t.tgname)
        from pg_trigger t where t.tgrelid = c.oid) as triggers
     from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'ukemi.event_bodies'::regclass
     order by 1`,
  );
  return rows;
}

/** Bodies of finished events in bulk, beside the given ones, so that a month is worth replacing. */
export async function addFinished(pool: Pool, count: number): Promise<void> {
  await pool.query(
    `with made as (
       insert into ukemi.events (id, source, event_id, type, received_at, body_sha256, body_bytes)
       select gen_random_uuid(), 'stripe', 'evt_bulk_' || n, 'charge.failed', ukemi.now(), '', 2
       from generate_series(1, $1::int) as n
       returning id, received_at
     ),
     outcomes as (
       insert into ukemi.event_outcomes (event, status, processed_at) select id, 'success', received_at from made
     )
     insert into ukemi.event_bodies (event, received_at, body, headers) select id, received_at, '{}', '{}' from made`,
    [count],
  );
}
