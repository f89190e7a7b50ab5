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
