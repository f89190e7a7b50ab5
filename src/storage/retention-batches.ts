// Removing rows in small transactions: finished jobs, attempts, and bodies that do not go with a whole month.
import { hasFinished, stopRouting } from "./kept.ts";
import type { Queryable } from "./postgres.ts";
import { noteRemoved, type Run } from "./retention.ts";

/** One step of a walk. */
export interface Step {
  /** Where the next step begins. */
  readonly after: string;
  readonly removed: number;
  readonly ended: boolean;
}

/** A walk along the ids of a table, up to the newest that is old enough. */
export interface Walk {
  readonly after: string;
  readonly until: string;
  readonly days: number;
}

/** How many rows one transaction looks at: few, for what it writes must reach the disk beside the commits of others. */
export const STEP_ROWS = 100;

/** How many ids: the index still has entries of rows that went before, until they are vacuumed. */
const STEP_IDS = 50_000;

// What is removed twice because a crash of the server forgot it is no harm: no commit here waits for the disk.
// Fresh tables have no statistics, and a walk along an index is always right here.
export const SETTINGS = `
select set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '2s', true),
  set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
  set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
  set_config('jit', 'off', true), set_config('ukemi.retention', 'on', true)`;

interface StepRow {
  readonly looked: number;
  readonly last: string | null;
  readonly removed: number;
  readonly attempts?: number;
}

/** Where a step ended: at its last row, or where it found no more of them. */
const LAST = `
  (case when count(*) < ${STEP_ROWS} then least($1::bigint + ${STEP_IDS}, $2::bigint) else max(id) end)::text`;

function toStep({ last, removed }: StepRow, { after, until }: Walk): Step {
  const reached = last ?? after;
  return { after: reached, removed, ended: BigInt(reached) >= BigInt(until) };
}

// A job whose event has another that is dead or unfinished stays: what the event comes to is read from all of them.
const JOBS = `
with looked as materialized (
  select j.id, j.created_at < ukemi.now() - $3 * interval '1 day' as old
  from ukemi.jobs j
  where j.id > $1::bigint and j.id <= least($1::bigint + ${STEP_IDS}, $2::bigint)
  order by j.id
  limit ${STEP_ROWS}
),
gone as (
  delete from ukemi.jobs j
  using looked
  where j.id = looked.id and looked.old
    and j.state in ('done', 'cancelled') and j.finished_at < ukemi.now() - $3 * interval '1 day'
    and ${hasFinished("j.event")}
  returning j.id
),
payloads as (
  delete from ukemi.job_payloads p using gone where p.job = gone.id
),
tries as (
  delete from ukemi.attempts a using gone where a.job = gone.id returning a.id
),
words as (
  -- without the job nobody could tell whose words they are: an erasure would not find them
  update ukemi.operation_items i set message = null
  from gone
  where i.job = gone.id and i.state = 'dead' and i.message is not null
)
select count(*)::int as looked, ${LAST} as last, (select count(*)::int from gone) as removed,
  (select count(*)::int from tries) as attempts
from looked`;

/** Removes finished jobs older than the days, with their attempts, payloads and dedupe keys. Must run in a transaction. */
export async function removeJobs(client: Queryable, run: Run, walk: Walk): Promise<Step> {
  await client.query(SETTINGS);
  const { rows } = await client.query<StepRow>(JOBS, [walk.after, walk.until, walk.days]);
  const row = rows[0]!;
  const step = toStep(row, walk);
  await noteRemoved(client, run, { jobs: row.removed, attempts: row.attempts ?? 0 }, { jobs: step.after });
  return step;
}

const ATTEMPTS = `
with looked as materialized (
  select a.id, a.ended_at < ukemi.now() - $3 * interval '1 day' as old
  from ukemi.attempts a
  where a.id > $1::bigint and a.id <= least($1::bigint + ${STEP_IDS}, $2::bigint)
  order by a.id
  limit ${STEP_ROWS}
),
gone as (
  delete from ukemi.attempts a
  using looked
  where a.id = looked.id and looked.old
    and not exists (select from ukemi.jobs j where j.id = a.job and j.state not in ('done', 'cancelled'))
  returning a.id
)
select count(*)::int as looked, ${LAST} as last, (select count(*)::int from gone) as removed
from looked`;

/** Removes attempts older than the days whose job is finished. Must run in a transaction. */
export async function removeAttempts(client: Queryable, run: Run, walk: Walk): Promise<Step> {
  await client.query(SETTINGS);
  const { rows } = await client.query<StepRow>(ATTEMPTS, [walk.after, walk.until, walk.days]);
  const step = toStep(rows[0]!, walk);
  await noteRemoved(client, run, { attempts: step.removed }, { attempts: step.after });
  return step;
}

const bodies = (table: string) => `
with looked as materialized (
  select b.event, b.received_at
  from ukemi.${table} b
  where b.event > $1::uuid
  order by b.event
  limit ${STEP_ROWS}
),
gone as (
  delete from ukemi.${table} b
  using looked
  where b.event = looked.event and b.received_at = looked.received_at
    and b.received_at < ukemi.now() - $2 * interval '1 day'
    and ${hasFinished("b.event")}
  returning b.event
)
select count(*)::int as looked, (select event::text from looked order by event desc limit 1) as last,
  (select count(*)::int from gone) as removed
from looked`;

/** Where a walk over bodies begins. */
export const FIRST_EVENT = "00000000-0000-0000-0000-000000000000";

/** A walk over one partition of bodies. */
export interface BodyWalk {
  /** The partition's name. */
  readonly table: string;
  readonly after: string;
  readonly days: number;
}

/** Removes bodies of one partition that are older than the days and that no job needs. Must run in a transaction. */
export async function removeBodies(client: Queryable, run: Run, walk: BodyWalk): Promise<Step> {
  await client.query(SETTINGS);
  // a statement of its own: the next one then sees the jobs that were being made
  await stopRouting(client);
  const { rows } = await client.query<StepRow>(bodies(walk.table), [walk.after, walk.days]);
  const { looked, last, removed } = rows[0]!;
  await noteRemoved(client, run, { bodies: removed });
  return { after: last ?? walk.after, removed, ended: looked < STEP_ROWS };
}

/** How long a worker that has ended is remembered, in days. */
export const WORKER_DAYS = 30;

/** Forgets workers that ended long ago. Must run in a transaction. */
export async function removeWorkers(client: Queryable, run: Run): Promise<number> {
  const { rowCount } = await client.query(
    `delete from ukemi.workers where ended_at < ukemi.now() - ${WORKER_DAYS} * interval '1 day'`,
  );
  const removed = rowCount ?? 0;
  await noteRemoved(client, run, { workers: removed });
  return removed;
}

/** Operations that ended more than so many days ago. One that stopped by itself waits for a person, however long. */
export const oldOperations = (days: string) => `
  select id
  from ukemi.operations
  where state in ('done', 'aborted') and replayed = 0
    and coalesce(finished_at, stopped_at) < ukemi.now() - ${days} * interval '1 day'`;

// Between two steps a person may resume what was aborted: of one that has lost items, none waits any more.
const OPERATIONS = `
with old as materialized (
  ${oldOperations("$1::int")}
  order by id
  limit 1
  for update skip locked
),
part as materialized (
  select max(position) as last
  from (
    select i.position
    from ukemi.operation_items i
    where i.operation = (select id from old)
    order by i.position
    limit ${STEP_ROWS}
  ) as i
),
items as (
  -- one stretch of the key: whatever the statistics say, what is left behind it is not read
  delete from ukemi.operation_items i
  where i.operation = (select id from old) and i.position <= (select last from part)
  returning i.position
),
closed as (
  update ukemi.operations o
  set gone = o.gone + o.waiting, waiting = 0
  from old
  where o.id = old.id and o.waiting > 0 and (select count(*) from items) = ${STEP_ROWS}
),
gone as (
  delete from ukemi.operations o
  using old
  where o.id = old.id and (select count(*) from items) < ${STEP_ROWS}
  returning o.id
)
select (select count(*)::int from old) as looked, (select count(*)::int from gone) as removed`;

/** Removes the oldest operation that ended more than so many days ago, a part of its items at a time. Must run in a transaction. */
export async function removeOperations(client: Queryable, run: Run, days: number): Promise<Step> {
  await client.query(SETTINGS);
  const { rows } = await client.query<{ looked: number; removed: number }>(OPERATIONS, [days]);
  const { looked, removed } = rows[0]!;
  await noteRemoved(client, run, { operations: removed });
  return { after: "", removed, ended: looked === 0 };
}
