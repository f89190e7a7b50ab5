// Destinations as an operator sees them: closed or paused, and what waits for each.
import { timeOf } from "./conditions.ts";
import type { Queryable } from "./postgres.ts";

/** A destination as the API and the command line show it. */
export interface ListedDestination {
  readonly name: string;
  /** Nothing goes there before; null where it is not paused. */
  readonly paused_until: Date | null;
  readonly pause_reason: string | null;
  /** Whether its circuit is open: it failed too often or refused us, and is only tried out now and then. */
  readonly open: boolean;
  readonly open_reason: string | null;
  readonly opened_at: Date | null;
  /** When it is tried out next. */
  readonly probe_at: Date | null;
  /** Calls in a row that failed. */
  readonly failures: number;
  /** Calls under way. */
  readonly sending: number;
  /** Effects that have still to go there. */
  readonly waiting: number;
  /** Calls that began in the last 24 hours, by whole hours; null where they are not counted. */
  readonly calls_day: number | null;
}

/** Among how many of the newest effects a destination is looked for that nothing was ever said of. */
const RECENT = 10_000;

// What waits, what is under way and what came last: the history, which may be millions, is not looked at.
const KNOWN = `
waits as (
  select e.destination, count(*) filter (where e.state = 'sending')::int as sending,
    count(*) filter (where e.state <> 'sending')::int as waiting
  from ukemi.effects e
  where e.state in ('planned', 'sending', 'uncertain') and e.kind <> 'call'
  group by e.destination
),
names as (
  select destination as name from waits
  union
  select name from ukemi.destinations
  union
  select r.destination
  from (select destination, kind from ukemi.effects order by id desc limit ${RECENT}) as r
  where r.kind <> 'call'
)`;

const LIST = `
with ${KNOWN}
select n.name,
  to_json(case when d.paused_until > m.at then d.paused_until end) as paused_until,
  case when d.paused_until > m.at then d.pause_reason end as pause_reason,
  d.opened_at is not null as open, d.open_reason, to_json(d.opened_at) as opened_at, to_json(d.probe_at) as probe_at,
  coalesce(d.failures, 0) as failures, coalesce(w.sending, 0) as sending, coalesce(w.waiting, 0) as waiting,
  (
    select sum(h.calls)::int from ukemi.destination_hours h
    where h.destination = n.name and h.hour > m.at - interval '25 hours'
  ) as calls_day
from names n
cross join (select ukemi.now() as at) as m
left join ukemi.destinations d on d.name = n.name
left join waits w on w.destination = n.name
order by n.name`;

type Timed = "paused_until" | "opened_at" | "probe_at";

/** Lists the destinations that were spoken of, that something waits for, or that something went to lately. */
export async function listDestinations(client: Queryable): Promise<readonly ListedDestination[]> {
  const { rows } = await client.query<
    Omit<ListedDestination, Timed> & { readonly [time in Timed]: string | null }
  >(LIST);
  return rows.map((row) => ({
    ...row,
    paused_until: timeOf(row.paused_until),
    opened_at: timeOf(row.opened_at),
    probe_at: timeOf(row.probe_at),
  }));
}

/** The names of those that are listed, in order. */
export async function readDestinationNames(client: Queryable): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(`with ${KNOWN} select name from names order by name`);
  return rows.map((row) => row.name);
}
