// Unusual hours: what they are judged by, and the record of them.
import type { Queryable } from "./postgres.ts";
import { utc } from "./statistics.ts";
import { holdsLock } from "./workers.ts";

/** A run of unusual hours, as the API and the command line show it. */
export interface Anomaly {
  readonly id: number;
  /** The first of the hours (UTC); of a silence, the first without an event. */
  readonly hour: string;
  readonly source: string;
  readonly type: string;
  readonly kind: "high" | "low" | "silent";
  /** How many came in the first hour; 0 in a silence. */
  readonly received: number;
  readonly expected_low: number;
  readonly expected_high: number;
  readonly noticed_at: string;
  /** The first hour that was usual again; null while it lasts. */
  readonly ended_at: string | null;
}

/** An hour by its number since 1970. */
const numberOf = (hour: string) => `(extract(epoch from ${hour}) / 3600)::int`;
const hourOf = (number: string) => `to_timestamp(${number}::bigint * 3600)`;

/** Nothing is judged until so long after its end. */
const SETTLED = "interval '2 minutes'";
/** Hours that were left behind are judged late, but not for ever. */
const HOURS_LATE_MAX = 6;

/** The next hour to be judged; undefined where none is over and counted. */
export async function nextHourToJudge(client: Queryable): Promise<number | undefined> {
  const { rows } = await client.query<{ next: number; is_over: boolean }>(`
    select ${numberOf("h.next")} as next,
      h.next + interval '1 hour' + ${SETTLED} <= c.counted_until as is_over
    from ukemi.counting c
    cross join lateral (
      select greatest(
        c.judged_until,
        -- the first whole hour since somebody counts: before it, that none came may mean that nobody was there
        date_trunc('hour', c.running_since, 'UTC') + interval '1 hour',
        date_trunc('hour', c.counted_until, 'UTC') - interval '${HOURS_LATE_MAX} hours'
      ) as next
    ) as h
    where c.counted_until is not null`);
  return rows[0]?.is_over ? rows[0].next : undefined;
}

/** A type of event that came before, and what is still unusual about it. */
export interface KnownType {
  readonly source: string;
  readonly type: string;
  /** The first hour in which it came. */
  readonly first: number;
  readonly open: { readonly kind: Anomaly["kind"]; readonly since: number } | null;
}

// From type to type by the index, however many hours each has.
const KNOWN = `
with recursive known as (
  (select source, type, hour from ukemi.event_hours order by source, type, hour limit 1)
  union all
  select n.source, n.type, n.hour
  from known k
  cross join lateral (
    select h.source, h.type, h.hour
    from ukemi.event_hours h
    where (h.source, h.type) > (k.source, k.type)
    order by h.source, h.type, h.hour
    limit 1
  ) as n
)
select k.source, k.type, ${numberOf("k.hour")} as first,
  case when a.kind is not null then json_build_object('kind', a.kind, 'since', ${numberOf("a.hour")}) end as open
from known k
left join ukemi.anomalies a on a.source = k.source and a.type = k.type and a.ended_at is null
where a.kind is not null or exists (
  select from ukemi.event_hours h
  where h.source = k.source and h.type = k.type and h.hour >= ${hourOf("$1")}
)`;

/** The types that came in this hour or later, and those that something is unusual about. */
export async function knownTypes(client: Queryable, from: number): Promise<readonly KnownType[]> {
  const { rows } = await client.query<KnownType>(KNOWN, [from]);
  return rows;
}

/** How many of a type came in each hour, all tenants together. */
export async function readSeries(
  client: Queryable,
  { source, type }: Pick<KnownType, "source" | "type">,
  [from, to]: readonly [number, number],
): Promise<ReadonlyMap<number, number>> {
  const { rows } = await client.query<{ hour: number; received: number }>(
    `select ${numberOf("hour")} as hour, sum(received)::int as received
     from ukemi.event_hours
     where source = $1 and type = $2 and hour between ${hourOf("$3")} and ${hourOf("$4")}
     group by hour`,
    [source, type, from, to],
  );
  return new Map(rows.map((row) => [row.hour, row.received]));
}

/** What judging an hour came to. Hours are numbers. */
export interface Judgement {
  readonly hour: number;
  /** Those whose unusual hours are over. */
  readonly ended: readonly Pick<KnownType, "source" | "type">[];
  readonly begun: readonly (Pick<
    Anomaly,
    "source" | "type" | "kind" | "received" | "expected_low" | "expected_high"
  > & { readonly since: number })[];
}

/** An anomaly that was written down by this call. */
export type Noticed = Anomaly & {
  /** False where the same was told in the last day. */
  readonly is_news: boolean;
};

const SHOWN = `
  a.id::int as id, ${utc("a.hour")} as hour, a.source, a.type, a.kind, a.received, a.expected_low, a.expected_high,
  ${utc("a.noticed_at")} as noticed_at, ${utc("a.ended_at")} as ended_at`;

const BEGIN = `
with a as (
  insert into ukemi.anomalies (hour, source, type, kind, received, expected_low, expected_high)
  select ${hourOf("b.since")}, b.source, b.type, b.kind, b.received, b.expected_low, b.expected_high
  from jsonb_to_recordset($1::jsonb) as b (
    source text, type text, kind text, since bigint, received int, expected_low int, expected_high int
  )
  on conflict do nothing
  returning *
)
select ${SHOWN}, not exists (
    -- the snapshot does not show the one that was just written
    select from ukemi.anomalies o
    where o.source = a.source and o.type = a.type and o.kind = a.kind
      and o.noticed_at > ukemi.now() - interval '1 day'
  ) as is_news
from a
order by a.source, a.type`;

/**
 * Writes a judgement down, once whoever judged the hour too. Must run in a transaction.
 * Returns what this call has written; undefined where another process was first.
 */
export async function recordJudgement(
  client: Queryable,
  { hour, ended, begun }: Judgement,
): Promise<readonly Noticed[] | undefined> {
  if (!(await holdsLock(client, "ukemi.judging"))) return undefined;
  const { rowCount } = await client.query(
    `update ukemi.counting set judged_until = ${hourOf("$1")} + interval '1 hour'
     where judged_until is null or judged_until <= ${hourOf("$1")}`,
    [hour],
  );
  if (rowCount === 0) return undefined;
  await client.query(
    `update ukemi.anomalies a set ended_at = ${hourOf("$1")}
     from jsonb_to_recordset($2::jsonb) as e (source text, type text)
     where a.source = e.source and a.type = e.type and a.ended_at is null`,
    [hour, JSON.stringify(ended)],
  );
  const { rows } = await client.query<Noticed>(BEGIN, [JSON.stringify(begun)]);
  return rows;
}

/** Which anomalies to list, the last noticed first. */
export interface AnomalyFilter {
  readonly since: Date;
  readonly until: Date;
  readonly limit: number;
  /** Only those noticed before this one: where the page before ended. */
  readonly before?: number | undefined;
}

/** Lists anomalies whose first hour lies in the time, the last noticed first. */
export async function listAnomalies(
  client: Queryable,
  { since, until, limit, before }: AnomalyFilter,
): Promise<readonly Anomaly[]> {
  const { rows } = await client.query<Anomaly>(
    `select ${SHOWN}
     from ukemi.anomalies a
     where a.hour >= date_trunc('hour', $1::timestamptz, 'UTC') and a.hour < $2::timestamptz
       and ($3::bigint is null or a.id < $3::bigint)
     order by a.id desc
     limit $4`,
    [since, until, before ?? null, limit],
  );
  return rows;
}
