// Queues: what waits in each, and whether an operator has paused it.
import type { Queryable } from "./postgres.ts";
import { notifyPause, notifyWorkers } from "./presence.ts";

/** A queue as the API and the command line show it. */
export interface ListedQueue {
  readonly name: string;
  readonly paused: boolean;
  /** Why it was paused or resumed last; null where nobody ever did. */
  readonly reason: string | null;
  readonly changed_at: Date | null;
  readonly ready: number;
  readonly scheduled: number;
  readonly waiting: number;
  readonly running: number;
  readonly dead: number;
  /** How long the oldest ready job has been due, in seconds; null where none is ready. */
  readonly oldest_ready_seconds: number | null;
}

// Two scans of partial indexes: finished jobs, which may be millions, are not looked at.
const KNOWN = `
jobs as (
  select queue, state, count(*)::int as count, min(run_at) as oldest_at
  from ukemi.jobs
  where state in ('scheduled', 'ready', 'waiting', 'running')
  group by queue, state
  union all
  select queue, state, count(*)::int, null
  from ukemi.jobs
  where state = 'dead'
  group by queue, state
),
names as (
  select queue as name from jobs
  union
  select name from ukemi.queues
  union
  select queue from ukemi.subscriptions where active
  union
  -- a task's queue is known only to those who work for it
  select unnest(queues) from ukemi.workers where ended_at is null
)`;

const LIST = `
with ${KNOWN}
select
  n.name, coalesce(q.paused, false) as paused, q.reason, to_json(q.changed_at) as changed_at,
  coalesce(sum(j.count) filter (where j.state = 'ready'), 0)::int as ready,
  coalesce(sum(j.count) filter (where j.state = 'scheduled'), 0)::int as scheduled,
  coalesce(sum(j.count) filter (where j.state = 'waiting'), 0)::int as waiting,
  coalesce(sum(j.count) filter (where j.state = 'running'), 0)::int as running,
  coalesce(sum(j.count) filter (where j.state = 'dead'), 0)::int as dead,
  greatest(0, extract(epoch from ukemi.now() - min(j.oldest_at) filter (where j.state = 'ready')))::float8
    as oldest_ready_seconds
from names n
left join ukemi.queues q on q.name = n.name
left join jobs j on j.queue = n.name
group by n.name, q.paused, q.reason, q.changed_at
order by n.name`;

/** Lists the queues that have handlers, workers, jobs, or were spoken of. */
export async function listQueues(client: Queryable): Promise<readonly ListedQueue[]> {
  type Row = Omit<ListedQueue, "changed_at" | "oldest_ready_seconds"> & {
    readonly changed_at: string | null;
    readonly oldest_ready_seconds: number | null;
  };
  const { rows } = await client.query<Row>(LIST);
  return rows.map((row) => ({
    ...row,
    changed_at: row.changed_at === null ? null : new Date(row.changed_at),
    oldest_ready_seconds: row.ready === 0 ? null : row.oldest_ready_seconds,
  }));
}

/** The names of the queues that are listed, in order. */
export async function readQueueNames(client: Queryable): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(`with ${KNOWN} select name from names order by name`);
  return rows.map((row) => row.name);
}

/** Whether a queue is to be worked on, who says so, and why. */
export interface QueueChange {
  readonly name: string;
  readonly paused: boolean;
  readonly actor: string;
  readonly reason: string;
}

const CHANGE = `
with was as materialized (
  select paused from ukemi.queues where name = $1::text
),
changed as (
  insert into ukemi.queues (name, paused, reason, changed_at)
  values ($1::text, $2::boolean, $4::text, ukemi.now())
  on conflict (name) do update
  set paused = excluded.paused, reason = excluded.reason, changed_at = excluded.changed_at
  returning name, paused
),
audits as (
  insert into ukemi.audit_log (actor, role, action, target, details)
  select $3::text, 'operator', case when paused then 'queue.paused' else 'queue.resumed' end, name,
    jsonb_build_object('reason', $4::text)
  from changed
)
select coalesce((select paused from was), false) <> $2::boolean as changed`;

/** Pauses or resumes a queue. Returns whether it was the other before. Must run in a transaction. */
export async function changeQueue(client: Queryable, change: QueueChange): Promise<boolean> {
  const { rows } = await client.query<{ changed: boolean }>(CHANGE, [
    change.name,
    change.paused,
    change.actor,
    change.reason,
  ]);
  if (change.paused) await notifyPause(client, change.name);
  else await notifyWorkers(client, [change.name]);
  return rows[0]!.changed;
}
