// Reading the counts: events by hour, and by type.
import type { Queryable } from "./postgres.ts";

/** How many events, by what has become of them. */
export interface EventCounts {
  readonly received: number;
  readonly pending: number;
  readonly success: number;
  readonly failed: number;
  readonly skipped: number;
  readonly unrouted: number;
}

/** The events of one type that came in one hour. An hour in which none came has no item. */
export interface CountedHour extends EventCounts {
  /** Its beginning. Hours are those of UTC. */
  readonly hour: string;
  readonly source: string;
  readonly type: string;
}

/** The events of one type. */
export interface CountedType extends EventCounts {
  readonly source: string;
  readonly type: string;
  readonly last_received_at: string;
  /** Successes among those that succeeded or failed, from 0 to 1; null where none has. */
  readonly success_share: number | null;
}

/** Which events were counted. */
export interface CountFilter {
  /** The first hour. */
  readonly since: Date;
  /** Only hours that begin before this. */
  readonly until: Date;
  readonly source?: string | undefined;
  readonly type?: string | undefined;
  /** Only events of these tenants; then none without a tenant. */
  readonly tenants?: readonly string[] | undefined;
}

const COUNTS = `
  sum(h.received)::int as received,
  sum(h.received - h.success - h.failed - h.skipped - h.unrouted)::int as pending,
  sum(h.success)::int as success, sum(h.failed)::int as failed,
  sum(h.skipped)::int as skipped, sum(h.unrouted)::int as unrouted`;

const WHERE = `
  h.hour >= date_trunc('hour', $1::timestamptz, 'UTC') and h.hour < $2::timestamptz
  and ($3::text is null or h.source = $3::text)
  and ($4::text is null or h.type = $4::text)
  and ($5::text[] is null or h.tenant <> '' and h.tenant = any($5::text[]))`;

/** A time as text, in UTC: that of a plain timestamp depends on the session's settings. */
export const utc = (time: string) => `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

function valuesOf({ since, until, source, type, tenants }: CountFilter): unknown[] {
  return [since, until, source ?? null, type ?? null, tenants ?? null];
}

/** Counts by hour, source and type, the oldest hour first. */
export async function readHours(client: Queryable, filter: CountFilter): Promise<readonly CountedHour[]> {
  const { rows } = await client.query<CountedHour>(
    `select ${utc("h.hour")} as hour, h.source, h.type, ${COUNTS}
     from ukemi.event_hours h
     where ${WHERE}
     group by h.hour, h.source, h.type
     order by h.hour, h.source, h.type`,
    valuesOf(filter),
  );
  return rows;
}

/** Counts by source and type, the most frequent first. */
export async function readTypes(client: Queryable, filter: CountFilter): Promise<readonly CountedType[]> {
  const { rows } = await client.query<CountedType>(
    `select h.source, h.type, ${COUNTS},
       ${utc("max(h.last_received_at)")} as last_received_at,
       sum(h.success)::float8 / nullif(sum(h.success + h.failed), 0) as success_share
     from ukemi.event_hours h
     where ${WHERE}
     group by h.source, h.type
     order by 3 desc, 1, 2`,
    valuesOf(filter),
  );
  return rows;
}

/** How far the count has come. */
export interface CountState {
  /** Everything until then has been counted; null before the first count has ended. */
  readonly counted_until: string | null;
  /** Hours that are still to be counted: many while an older store is counted for the first time. */
  readonly hours_to_count: number;
}

export async function readCountState(client: Queryable): Promise<CountState> {
  const { rows } = await client.query<CountState>(
    `select ${utc("counted_until")} as counted_until,
       (select count(*)::int from ukemi.stale_hours) as hours_to_count
     from ukemi.counting`,
  );
  return rows[0]!;
}
