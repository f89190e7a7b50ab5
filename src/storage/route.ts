// Giving stored events that nobody wanted to handlers that came later: the jobs that the receiver would have made.
import { REFS } from "./dead-filter.ts";
import type { JobKey } from "./due.ts";
import { uuidv7Floor } from "./ids.ts";
import { SHARE_ROUTING } from "./kept.ts";
import type { Queryable } from "./postgres.ts";
import { notifyWorkers } from "./presence.ts";

/** Which unrouted events, and for whom. */
export interface RouteFilter {
  /** Received at this time or later. */
  readonly since: Date;
  /** Received before this time. */
  readonly until: Date;
  readonly type?: string;
  /** Only jobs of this handler. @default every handler that wants the event */
  readonly handler?: string;
}

/** Jobs that a handler would get for one type of event. */
export interface RouteGroup {
  readonly handler: string;
  readonly type: string;
  readonly count: number;
}

/** What routing would make. */
export interface RoutePreview {
  readonly events: number;
  readonly jobs: number;
  /** Events that a handler wants and whose body is gone: they stay unrouted. */
  readonly without_body: number;
  readonly groups: readonly RouteGroup[];
}

/** A process clock and the database's may differ a little: ids are only a coarse bound, `received_at` the exact one. */
const ID_SLACK_MS = 10 * 60_000;

/** Parameters 1 to 6: bounds of the id, bounds of the time, type, handler. */
const UNROUTED = `
  o.status = 'unrouted' and o.event >= $1::uuid and o.event < $2::uuid
  and e.received_at >= $3::timestamptz and e.received_at < $4::timestamptz
  and ($5::text is null or e.type = $5::text)`;

const WANTS = `
  s.active and s.source = e.source and e.type like s.type_like and ($6::text is null or s.name = $6::text)`;

const HAS_BODY = `
  exists (select from ukemi.event_bodies b where b.event = e.id and b.received_at = e.received_at)`;

function valuesOf({ since, until, type, handler }: RouteFilter): unknown[] {
  return [
    uuidv7Floor(since.getTime() - ID_SLACK_MS),
    uuidv7Floor(until.getTime() + ID_SLACK_MS),
    since,
    until,
    type ?? null,
    handler ?? null,
  ];
}

/** Says which jobs routing would make. */
export async function previewRoute(client: Queryable, filter: RouteFilter): Promise<RoutePreview> {
  const { rows } = await client.query<{
    handler: string | null;
    type: string | null;
    jobs: number;
    events: number;
    without_body: number;
  }>(
    `select s.name as handler, e.type,
       count(*) filter (where b.present)::int as jobs,
       count(distinct e.id) filter (where b.present)::int as events,
       count(distinct e.id) filter (where not b.present)::int as without_body
     from ukemi.event_outcomes o
     join ukemi.events e on e.id = o.event
     join ukemi.subscriptions s on ${WANTS}
     cross join lateral (select ${HAS_BODY} as present) as b
     where ${UNROUTED}
     group by grouping sets ((s.name, e.type), ())
     order by 3 desc, 1, 2`,
    valuesOf(filter),
  );
  const total = rows.find((row) => row.handler === null);
  return {
    events: total?.events ?? 0,
    jobs: total?.jobs ?? 0,
    without_body: total?.without_body ?? 0,
    groups: rows.flatMap(({ handler, type, jobs }) =>
      handler === null || type === null || jobs === 0 ? [] : [{ handler, type, count: jobs }],
    ),
  };
}

/** Unrouted events of one type. */
export interface UnroutedType {
  readonly type: string;
  readonly count: number;
}

/** Counts the unrouted events of each type, the most frequent first, whether anybody wants them or not. */
export async function countUnrouted(
  client: Queryable,
  filter: RouteFilter,
): Promise<readonly UnroutedType[]> {
  const { rows } = await client.query<UnroutedType>(
    `select e.type, count(*)::int as count
     from ukemi.event_outcomes o
     join ukemi.events e on e.id = o.event
     where ${UNROUTED}
     group by e.type
     order by 2 desc, 1`,
    valuesOf(filter).slice(0, 5),
  );
  return rows;
}

/** Who routes which events, and why. */
export interface Routing extends RouteFilter {
  /** Only events behind this id: where the batch before ended. */
  readonly after: string;
  readonly most: number;
  readonly actor: string;
  readonly reason: string;
}

/** One batch of routed events. */
export interface Routed {
  readonly events: number;
  readonly jobs: number;
  readonly keys: readonly JobKey[];
  /** Where the next batch begins; undefined where this was the last. */
  readonly next: string | undefined;
}

// The columns are those of the insert in events.ts: a job made late must not differ from one made at once.
const ROUTE = `
with picked as materialized (
  select e.id
  from ukemi.event_outcomes o
  join ukemi.events e on e.id = o.event
  where ${UNROUTED} and o.event > $7::uuid and ${HAS_BODY}
    and exists (select from ukemi.subscriptions s where ${WANTS})
  order by o.event
  limit $8::int
  for update of o
),
wanted as materialized (
  select
    s.queue, s.name, e.id as event, e.tenant, s.priority, s.max_attempts, s.policy, s.ordered, e.received_at,
    case when s.key_by is not null then (
      select ukemi.key_of(s.key_by, e.tenant, array_agg(r.kind), array_agg(r.ref)) from ukemi.refs_of(e.id) as r
    ) end as key
  from picked
  join ukemi.events e using (id)
  join ukemi.subscriptions s on ${WANTS}
),
routed as (
  insert into ukemi.jobs (
    queue, kind, subscription, event, tenant, key, ordered, priority, max_attempts, policy, run_at, created_at, state
  )
  select
    w.queue, 'handler', w.name, w.event, w.tenant, w.key, w.ordered, w.priority, w.max_attempts, w.policy,
    -- by the time of receipt they keep their place in the order of a key
    w.received_at, ukemi.now(),
    case when w.key is null then 'ready' else 'waiting' end
  from wanted w
  order by w.event
  on conflict (event, subscription) where event is not null do nothing
  returning id, queue, subscription, event, tenant, key
),
outcomes as (
  update ukemi.event_outcomes o
  set status = 'pending', processed_at = null
  where o.event in (select event from routed)
),
audits as (
  insert into ukemi.audit_log (actor, role, action, target, tenant, details)
  select $9::text, 'operator', 'event.routed', r.event::text, r.tenant,
    jsonb_build_object(
      'reason', $10::text, 'handler', r.subscription, 'queue', r.queue, 'job', r.id, 'event_id', e.event_id,
      'type', e.type, 'refs', ${REFS}
    )
  from routed r
  join ukemi.events e on e.id = r.event
)
select
  (select count(*)::int from picked) as picked,
  (select max(id::text) from picked) as last,
  (select count(distinct event)::int from routed) as events,
  (select count(*)::int from routed) as jobs,
  coalesce((
    select json_agg(json_build_array(k.queue, k.key)) from (select distinct queue, key from routed) as k
  ), '[]') as keys`;

// Each batch walks the index from where the one before ended; estimates that are off would sort the whole backlog again.
const SETTINGS = `
select set_config('lock_timeout', '2s', true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
  set_config('enable_sort', 'off', true), set_config('enable_hashjoin', 'off', true),
  set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true)`;

// The bodies that the batch finds stay until it has committed.
const HOLD_BODIES = `select ${SHARE_ROUTING}::text`;

/** Routes one batch. Must run in a transaction; its commit starts the workers. */
export async function routeBatch(client: Queryable, routing: Routing): Promise<Routed> {
  await client.query(SETTINGS);
  await client.query(HOLD_BODIES);
  const { rows } = await client.query<{
    picked: number;
    last: string | null;
    events: number;
    jobs: number;
    keys: [queue: string, key: string | null][];
  }>(ROUTE, [...valuesOf(routing), routing.after, routing.most, routing.actor, routing.reason]);
  const { picked, last, events, jobs, keys } = rows[0]!;
  const ready = keys.flatMap(([queue, key]) => (key === null ? [queue] : []));
  if (ready.length > 0) await notifyWorkers(client, ready);
  return {
    events,
    jobs,
    keys: keys.flatMap(([queue, key]) => (key === null ? [] : [{ queue, key }])),
    next: last === null || picked < routing.most ? undefined : last,
  };
}

/** True where an active handler of this name wants events. */
export async function hasHandler(client: Queryable, name: string): Promise<boolean> {
  const { rowCount } = await client.query("select from ukemi.subscriptions where name = $1 and active", [
    name,
  ]);
  return rowCount === 1;
}
