// Making jobs that belong to no event, in the transaction of whoever asks.
import { CHANNEL } from "./presence.ts";

/** Anything that runs one parameterised statement: a client or transaction of `pg`, or a wrapper around an ORM's. */
export interface SqlClient {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/** A job to be made. */
export interface NewTask {
  readonly handler: string;
  readonly queue: string;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly policy: string;
  readonly tenant: string | null;
  readonly key: string | null;
  readonly ordered: boolean;
  readonly dedupeKey: string | null;
  /** The time at which it is due; null for now. */
  readonly runAt: Date | null;
  /** Or how long from now, on the database's clock. */
  readonly delayMs: number;
  /** JSON text. */
  readonly payload: string;
}

const ENQUEUE = `
with moment as (
  select ukemi.now() as at, coalesce($9::timestamptz, ukemi.now() + $10::float8 * interval '1 ms') as run_at
),
made as (
  insert into ukemi.jobs (
    queue, kind, subscription, tenant, key, ordered, dedupe_key, state, priority, max_attempts, policy, run_at, created_at
  )
  select
    $1::text, 'task', $2::text, $3::text, $4::text, $5::boolean, $6::text,
    case when m.run_at > m.at then 'scheduled' when $4::text is null then 'ready' else 'waiting' end,
    $7::smallint, $8::integer, $11::text, greatest(m.run_at, m.at), m.at
  from moment m
  on conflict (subscription, coalesce(tenant, ''), dedupe_key) where dedupe_key is not null do nothing
  returning id, queue, key, state
),
payloads as (
  insert into ukemi.job_payloads (job, payload)
  select id, $12::text from made
),
-- reaches the workers when the caller's transaction commits, and not before
news as materialized (
  select pg_notify('${CHANNEL}', case state when 'waiting' then queue || '/' || key when 'scheduled' then queue || '/' else queue end) from made
)
select id::text, false as duplicate from made, news
union all
select j.id::text, true
from ukemi.jobs j
where $6::text is not null and j.subscription = $2::text and coalesce(j.tenant, '') = coalesce($3::text, '')
  and j.dedupe_key = $6::text and not exists (select from made)`;

/** Makes the job; a second one with the same handler, tenant and dedupe key is the first one. */
export async function enqueueTask(
  client: SqlClient,
  task: NewTask,
): Promise<{ readonly id: string; readonly duplicate: boolean }> {
  const values = [
    task.queue,
    task.handler,
    task.tenant,
    task.key,
    task.ordered,
    task.dedupeKey,
    task.priority,
    task.maxAttempts,
    task.runAt?.toISOString() ?? null,
    task.delayMs,
    task.policy,
    task.payload,
  ];
  let { rows } = await client.query(ENQUEUE, values);
  // made by a transaction that committed after this statement's snapshot: the next one sees it
  if (rows.length === 0) ({ rows } = await client.query(ENQUEUE, values));
  const row = rows[0] as { id: string; duplicate: boolean } | undefined;
  if (!row) throw new Error("the job with this dedupe key has just gone: try again");
  return row;
}
