// Whom an erasure means: the events of one subject, and the refused requests that contain its id.
import { countEffects } from "./erasure-effects.ts";
import { isUuid } from "./ids.ts";
import type { Queryable } from "./postgres.ts";

/** Whose bodies, by what their events carry. */
export interface ErasureFilter {
  /** A business id found in events, such as `cus_…`, of any kind; or with its kind, as `customer:cus_…`. */
  readonly ref?: string | undefined;
  /** One event, by our id or by the sender's. */
  readonly event?: string | undefined;
  /** Only events of these tenants. */
  readonly tenants?: readonly string[] | undefined;
}

/** What an erasure would touch. */
export interface ErasurePreview {
  /** Events that were not erased before. */
  readonly events: number;
  /** How many bodies are still there. */
  readonly bodies: number;
  /** Effects that they decided and that still hold what was sent. */
  readonly effects: number;
  /** Jobs and effects that have not ended, the running ones among them. */
  readonly unfinished: number;
  readonly running: number;
  /** Dead letters of events that were not erased before: without the body they cannot be replayed. */
  readonly dead: number;
  /** Refused requests in the quarantine that contain the id. */
  readonly rejections: number;
}

/** A short id would be found in requests of everybody. */
const NEEDLE_CHARACTERS_MIN = 4;

/** Events `e` that are meant: parameters 1 to 6. Those erased before are too: words may have been written since. */
const MEANT = `
  e.id in (
    select ukemi.events_with_ref($1::text)
    union
    select w.event
    from ukemi.events_with_ref($3::text) as w (event)
    where exists (select from ukemi.refs_of(w.event) as r where r.kind = $2::text and r.ref = $3::text)
    union
    select s.id from ukemi.events s where s.id = $4::uuid
    union
    select s.id from ukemi.events s where s.event_id = $5::text
  )
  and ($6::text[] is null or e.tenant = any($6::text[]))`;

function valuesOf({ ref, event, tenants }: ErasureFilter): unknown[] {
  const at = ref?.indexOf(":") ?? -1;
  const isKind = ref !== undefined && at > 0;
  return [
    ref ?? null,
    isKind ? ref.slice(0, at) : null,
    isKind ? ref.slice(at + 1) : null,
    // a sender's id may look like one of ours
    event !== undefined && isUuid(event) ? event : null,
    event ?? null,
    tenants ?? null,
  ];
}

/** Rejections belong to no tenant: whoever is bound to one neither sees nor removes them. Parameter 1: what to look for. */
export const HOLDS_NEEDLE = `
  exists (
    select from unnest($1::text[]) as n (needle)
    where position(convert_to(n.needle, 'UTF8') in r.body_sample) > 0 or position(n.needle in r.headers) > 0
  )`;

export function needlesOf({ ref, event, tenants }: ErasureFilter): string[] {
  if (tenants) return [];
  const afterKind = ref === undefined || ref.indexOf(":") < 1 ? [] : [ref.slice(ref.indexOf(":") + 1)];
  const needles = [
    ...(ref === undefined ? [] : [ref]),
    ...afterKind,
    ...(event === undefined ? [] : [event]),
  ];
  return needles.filter((needle) => needle.length >= NEEDLE_CHARACTERS_MIN);
}

/** Says what an erasure would touch. */
export async function previewErasure(client: Queryable, filter: ErasureFilter): Promise<ErasurePreview> {
  const { rows } = await client.query<Omit<ErasurePreview, "rejections" | "effects">>(
    `with meant as materialized (
       select e.id, e.received_at, exists (select from ukemi.erasures x where x.event = e.id) as erased
       from ukemi.events e
       where ${MEANT}
     ),
     jobs as (
       select j.state, meant.erased from ukemi.jobs j join meant on meant.id = j.event
     )
     select
       (select count(*)::int from meant where not erased) as events,
       (
         select count(*)::int
         from meant join ukemi.event_bodies b on b.event = meant.id and b.received_at = meant.received_at
       ) as bodies,
       count(*) filter (where state in ('scheduled', 'ready', 'waiting', 'running'))::int as unfinished,
       count(*) filter (where state = 'running')::int as running,
       count(*) filter (where state = 'dead' and not erased)::int as dead
     from jobs`,
    valuesOf(filter),
  );
  const { rows: refused } = await client.query<{ count: number }>(
    `select count(*)::int as count from ukemi.rejections r where ${HOLDS_NEEDLE}`,
    [needlesOf(filter)],
  );
  const effects = await countEffects(client, await chooseErasure(client, filter));
  const { events, bodies, unfinished, running, dead } = rows[0]!;
  return {
    events,
    bodies,
    effects: effects.effects,
    unfinished: unfinished + effects.unfinished,
    running: running + effects.running,
    dead: dead + effects.dead,
    rejections: refused[0]!.count,
  };
}

/** The events that are meant now, the oldest first. */
export async function chooseErasure(client: Queryable, filter: ErasureFilter): Promise<readonly string[]> {
  const { rows } = await client.query<{ id: string }>(
    `select e.id from ukemi.events e where ${MEANT} order by e.id`,
    valuesOf(filter),
  );
  return rows.map((row) => row.id);
}
