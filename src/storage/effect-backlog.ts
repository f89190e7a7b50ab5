// What of the ledger needs eyes, for the gauges: what waits, what nobody knows, and destinations that take nothing.
import { shownState } from "./effect-state.ts";
import type { EffectKind } from "./effects.ts";
import type { Queryable } from "./postgres.ts";

/** A destination that is told by its name: one of our own settings, of which there are few. */
export interface KnownDestination {
  readonly kind: EffectKind;
  readonly destination: string;
}

/** Effects of one kind to one destination that have not come to their end. */
export interface EffectBacklog {
  readonly kind: string;
  /** `other` for all that no setting names: an application may take URLs from its own customers. */
  readonly destination: string;
  /** Planned, and no other effect must be done first. */
  readonly waiting: number;
  readonly uncertain: number;
  readonly held: number;
  /** How long ago the oldest of those that wait was intended; null where none waits. */
  readonly oldest_waiting_seconds: number | null;
}

/** A destination, or all `other` ones: how many of them take nothing now. */
export interface ClosedDestinations {
  readonly destination: string;
  readonly paused: number;
  readonly open: number;
}

export interface LedgerBacklog {
  readonly effects: readonly EffectBacklog[];
  readonly destinations: readonly ClosedDestinations[];
}

/** Whatever no setting names. */
export const OTHER = "other";

const named = (column: string) => `case when ${column} = any($2::text[]) then ${column} else '${OTHER}' end`;

// A range of a partial index: what has ended, which may be millions, is not looked at. Those of the settings are always told.
const EFFECTS = `
with told as (
  select e.kind, ${named("e.destination")} as destination, e.planned_at,
    case when e.state = 'planned' then 'waiting' else ${shownState("e")} end as state
  from ukemi.effects e
  where e.state in ('planned', 'sending', 'uncertain', 'held') and (e.state <> 'planned' or e.job is not null)
  union all
  select k.kind, k.destination, null, null
  from unnest($1::text[], $2::text[]) as k (kind, destination)
)
select kind, destination,
  count(*) filter (where state = 'waiting')::int as waiting,
  count(*) filter (where state = 'uncertain')::int as uncertain,
  count(*) filter (where state = 'held')::int as held,
  greatest(0, extract(epoch from ukemi.now() - min(planned_at) filter (where state = 'waiting')))::float8
    as oldest_waiting_seconds
from told
group by kind, destination
order by kind, destination`;

const DESTINATIONS = `
with told as (
  select ${named("d.name")} as destination, d.paused_until > m.at as paused, d.opened_at is not null as open
  from ukemi.destinations d, (select ukemi.now() as at) as m
  where d.paused_until > m.at or d.opened_at is not null
  union all
  select k.destination, false, false
  from unnest($1::text[], $2::text[]) as k (kind, destination)
)
select destination, count(*) filter (where paused)::int as paused, count(*) filter (where open)::int as open
from told
group by destination
order by destination`;

/** Counts it. The names that are told are those that are given, and no others. */
export async function readLedger(
  client: Queryable,
  known: readonly KnownDestination[],
): Promise<LedgerBacklog> {
  const names = [known.map(({ kind }) => kind), known.map(({ destination }) => destination)];
  const { rows: effects } = await client.query<EffectBacklog>(EFFECTS, names);
  const { rows: destinations } = await client.query<ClosedDestinations>(DESTINATIONS, names);
  return {
    // greatest() ignores null: without this none that waits would be one that waits for no time
    effects: effects.map((row) => (row.waiting > 0 ? row : { ...row, oldest_waiting_seconds: null })),
    destinations,
  };
}
