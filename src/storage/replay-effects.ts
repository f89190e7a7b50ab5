// What a replay of dead letters means for the outside world: which effects would be tried, and which are done for good.
import { whereDead, type DeadFilter } from "./dead-filter.ts";
import { briefOf, openBriefs, shownState, type BriefEffect, type StoredBrief } from "./effect-state.ts";
import { NO_KEYS, type Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";

/** Some effects, and how many there are in all. */
export interface EffectCount {
  readonly count: number;
  /** The first twenty. */
  readonly items: readonly BriefEffect[];
}

/** What a replay means for effects. */
export interface EffectPreview {
  /** Those whose own jobs are among the dead letters. */
  readonly would_run: EffectCount;
  /** Those that the events or jobs among them decided before, and that will not be repeated. */
  readonly done: EffectCount;
}

const SHOWN = 20;

const counted = (rows: string) => `
json_build_object(
  'count', (select count(*)::int from ${rows}),
  'items', coalesce((
    select json_agg(${briefOf("s")} order by s.id)
    from (select * from ${rows} order by id limit ${SHOWN}) as s
  ), '[]'::json)
)`;

/** Says what a replay of these dead letters means for effects. */
export async function previewEffects(
  client: Queryable,
  filter: DeadFilter,
  keyring: Keyring = NO_KEYS,
): Promise<EffectPreview> {
  const where = whereDead(filter, [filter.tenants ?? null]);
  const { rows } = await client.query<Record<keyof EffectPreview, StoredCount>>(
    `with dead as materialized (
       select j.id, j.event, j.kind
       from ukemi.jobs j
       left join ukemi.events e on e.id = j.event
       where ${where.sql}
     ),
     tried as materialized (
       select x.id, x.kind, ${shownState("x")} as state, x.target, x.target_sealed
       from dead d
       join ukemi.effects x on x.job = d.id
       -- what has ended otherwise, or waits for a person, is not begun again
       where d.kind = 'effect' and x.state not in ('done', 'cancelled', 'suppressed', 'held')
     ),
     finished as materialized (
       select x.id, x.kind, x.state, x.target, x.target_sealed
       from ukemi.effects x
       where x.event in (select d.event from dead d where d.event is not null) and x.state = 'done'
         and ($1::text[] is null or x.tenant = any($1::text[]))
       union
       select x.id, x.kind, x.state, x.target, x.target_sealed
       from ukemi.effects x
       where x.cause in (select d.id from dead d) and x.state = 'done'
         and ($1::text[] is null or x.tenant = any($1::text[]))
     )
     select ${counted("tried")} as would_run, ${counted("finished")} as done`,
    where.values,
  );
  const opened = async ({ count, items }: StoredCount) => ({
    count,
    items: await openBriefs(client, keyring, items),
  });
  const { would_run, done } = rows[0]!;
  return { would_run: await opened(would_run), done: await opened(done) };
}

type StoredCount = Omit<EffectCount, "items"> & { readonly items: readonly StoredBrief[] };
