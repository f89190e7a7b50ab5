// Small regular duties of the store: the database's time, the months of bodies made ahead, the index of refs.
import { UkemiError } from "../errors.ts";
import { steadyMs, type DatabaseClock } from "../clock.ts";
import type { Queryable } from "./postgres.ts";

/** Takes a reading of the database's clock. */
export async function sampleClock(client: Queryable, clock: DatabaseClock): Promise<void> {
  const sentAt = steadyMs();
  const { rows } = await client.query<{ now_ms: string }>(
    "select extract(epoch from ukemi.now()) * 1000 as now_ms",
  );
  clock.sample(Number(rows[0]!.now_ms), sentAt);
}

/** Makes the partitions of `event_bodies` for this month and the months ahead; returns how many were missing. */
export async function makeBodyMonths(client: Queryable, ahead: number): Promise<number> {
  const { rows } = await client.query<{ made: number }>("select ukemi.make_body_months($1) as made", [ahead]);
  return rows[0]?.made ?? 0;
}

/** Brings the refs of new events from the index's waiting list into the index: else a receiver would, in the middle of a commit. */
export async function indexRefs(client: Queryable): Promise<void> {
  await client.query("select gin_clean_pending_list('ukemi.events_by_ref')");
}

/** Throws where an event could not be stored now. */
export async function requireWritable(client: Queryable): Promise<void> {
  const { rows } = await client.query<{ read_only: boolean }>(
    "select current_setting('transaction_read_only') = 'on' as read_only",
  );
  if (rows[0]?.read_only)
    throw new UkemiError("store_unavailable", "The database takes no writes: is it a standby?");
}

/** Facts for `ukemi doctor`. */
export interface StoreHealth {
  /** Bodies that fell into the default partition because their month was not made in time. */
  readonly strayBodies: number;
  /** Seconds by which tests moved ukemi.now(); 0 in production. */
  readonly clockShiftSeconds: number;
  /** Seconds that the oldest open transaction has been running. */
  readonly oldestTransactionSeconds: number;
}

/** Reads the facts that an operator should know of. */
export async function readHealth(client: Queryable): Promise<StoreHealth> {
  const { rows } = await client.query<{ stray: string; shift: string; oldest: string }>(`
    select
      (select count(*) from (select from ukemi.event_bodies_default limit 1000) as stray) as stray,
      (select extract(epoch from shift) from ukemi.clock) as shift,
      coalesce((
        select extract(epoch from max(clock_timestamp() - xact_start))
        from pg_stat_activity
        where datname = current_database()
      ), 0) as oldest`);
  const row = rows[0]!;
  return {
    strayBodies: Number(row.stray),
    clockShiftSeconds: Number(row.shift),
    oldestTransactionSeconds: Number(row.oldest),
  };
}
