// What becomes ready without anybody's doing: jobs whose time has come, and the next job of a key that is free.
import type { Queryable } from "./postgres.ts";

/** Jobs of the same queue and key run one at a time. */
export interface JobKey {
  readonly queue: string;
  readonly key: string;
}

/** What the clock has brought. */
export interface Due {
  /** Queues that have new work. */
  readonly queues: readonly string[];
  /** How many jobs have become ready or wait for their key. */
  readonly moved: number;
  /** Milliseconds until the next job is due; undefined where none is scheduled. */
  readonly nextMs: number | undefined;
}

const DUE_MOST = 1000;

const MOVE_DUE = `
with due as (
  select id
  from ukemi.jobs
  where state = 'scheduled' and run_at <= ukemi.now()
  order by run_at
  limit ${DUE_MOST}
  for update skip locked
),
moved as (
  update ukemi.jobs j
  set state = case when j.key is null or j.key_held then 'ready' else 'waiting' end
  from due
  where j.id = due.id
  returning j.queue, j.key, j.state
)
select distinct queue, case when state = 'waiting' then key end as key, count(*) over () as moved
from moved`;

const NEXT_DUE = `
select extract(epoch from min(run_at) - ukemi.now()) * 1000 as next_ms
from ukemi.jobs
where state = 'scheduled'`;

/** Makes ready what is due. */
export async function moveDue(client: Queryable): Promise<Due> {
  const { rows } = await client.query<{ queue: string; key: string | null; moved: string }>(MOVE_DUE);
  const keys = rows.flatMap(({ queue, key }) => (key === null ? [] : [{ queue, key }]));
  if (keys.length > 0) await promoteKeys(client, keys);
  const next = await client.query<{ next_ms: string | null }>(NEXT_DUE);
  const nextMs = next.rows[0]?.next_ms;
  return {
    queues: [...new Set(rows.map((row) => row.queue))],
    moved: Number(rows[0]?.moved ?? 0),
    nextMs: nextMs === null || nextMs === undefined ? undefined : Math.max(0, Number(nextMs)),
  };
}

/** Lets the next job of each key run. Must be a transaction of its own, after the one that freed the key. */
export async function promoteKeys(client: Queryable, keys: readonly JobKey[]): Promise<number> {
  const { rows } = await client.query<{ promoted: number }>("select ukemi.promote_keys($1, $2) as promoted", [
    keys.map(({ queue }) => queue),
    keys.map(({ key }) => key),
  ]);
  return rows[0]?.promoted ?? 0;
}

/** Walks from key to key, however many jobs wait behind each, and keeps those that nobody holds. */
const STRANDED = `
with recursive heads as (
  (select queue, key from ukemi.jobs where state = 'waiting' order by queue, key limit 1)
  union all
  select n.queue, n.key
  from heads h
  cross join lateral (
    select j.queue, j.key
    from ukemi.jobs j
    where j.state = 'waiting' and (j.queue, j.key) > (h.queue, h.key)
    order by j.queue, j.key
    limit 1
  ) as n
)
select queue, key
from heads h
where not exists (select from ukemi.jobs j where j.queue = h.queue and j.key = h.key and j.key_held)
limit 1000`;

/** The net below promotion: a process may die between its commit and the promotion that should have followed. */
export async function promoteStranded(client: Queryable): Promise<readonly string[]> {
  const { rows } = await client.query<JobKey>(STRANDED);
  if (rows.length > 0) await promoteKeys(client, rows);
  return [...new Set(rows.map((row) => row.queue))];
}

/** Each kind of ready jobs has an index of its own; those that wait for a key become ready in time. */
const strays = (recovered: string) => `
  select j.id, h.home
  from (select distinct unnest(w.queues) as queue from ukemi.workers w) as q
  cross join unnest($1::text[], $2::text[]) as h (name, home)
  cross join lateral (
    select j.id
    from ukemi.jobs j
    where j.queue = q.queue and j.subscription = h.name and j.state = 'ready' and j.recoveries ${recovered}
    limit 500
  ) as j
  where q.queue <> h.home
    -- while a worker of the version before still serves it there, it is not ours to move
    and not exists (
      select from ukemi.workers w
      where w.ended_at is null and q.queue = any(w.queues) and h.name = any(w.handlers) and w.id <> $3
    )`;

const REHOME = `
with stray as materialized (${strays("= 0")} union all ${strays("> 0")})
update ukemi.jobs j
set queue = stray.home, key_held = false, state = case when j.key is null then 'ready' else 'waiting' end
from stray
where j.id = stray.id and j.state = 'ready'
returning j.queue`;

/** A handler and the queue in which its jobs belong. */
export interface Home {
  readonly handler: string;
  readonly queue: string;
}

/** Moves jobs that were made for a queue which their handler has left since. Returns the queues that have new work. */
export async function rehomeJobs(
  client: Queryable,
  worker: string,
  homes: readonly Home[],
): Promise<readonly string[]> {
  const { rows } = await client.query<{ queue: string }>(REHOME, [
    homes.map(({ handler }) => handler),
    homes.map(({ queue }) => queue),
    worker,
  ]);
  return [...new Set(rows.map((row) => row.queue))];
}
