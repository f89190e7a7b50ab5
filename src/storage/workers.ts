// Workers: who registers, and who leaves.
import type { Queryable } from "./postgres.ts";
import { mayHaveBegun, PLACES } from "./begun.ts";

export interface NewWorker {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly handlers: readonly string[];
  /** How many jobs of each queue may run at once. */
  readonly concurrency: ReadonlyMap<string, number>;
  readonly hasSession: boolean;
  readonly leaseMs: number;
}

/** Registers a worker. Returns the number that its session locks. */
export async function registerWorker(client: Queryable, worker: NewWorker): Promise<number> {
  const { rows } = await client.query<{ number: number }>(
    `insert into ukemi.workers (id, host, pid, version, handlers, queues, concurrency, has_session, lease_ms)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     returning number`,
    [
      worker.id,
      worker.host,
      worker.pid,
      worker.version,
      worker.handlers,
      [...worker.concurrency.keys()],
      [...worker.concurrency.values()],
      worker.hasSession,
      worker.leaseMs,
    ],
  );
  return rows[0]!.number;
}

/** Ends a worker that is alive to say so, and gives back what it still holds: no crash, no attempt burnt. */
export async function endWorker(
  client: Queryable,
  worker: string,
  reason: "stopped" | "replaced",
): Promise<number> {
  const { rowCount } = await client.query(
    `with places as materialized (${PLACES} and j.worker = $1),
     ended as (
       update ukemi.workers
       set ended_at = ukemi.now(), end_reason = $2
       where id = $1 and ended_at is null
     ),
     held as (
       -- a row that is locked is being settled at this moment: if that fails, whoever looks for lost jobs finds it
       select id from ukemi.jobs where worker = $1 and state = 'running' for update skip locked
     ),
     given as (
       update ukemi.jobs j
       set state = 'ready', lease_until = null, lease_token = null, worker = null,
         started_at = case when ${mayHaveBegun("j")} then j.started_at end
       from held
       where j.id = held.id
       returning j.id, j.attempt, j.started_at
     )
     insert into ukemi.attempts (job, number, outcome, error_class, error_message, started_at, worker)
     select id, attempt + 1, 'returned', 'Returned',
       case $2 when 'stopped' then 'the worker was stopped' else 'the worker lost its connection' end,
       started_at, $1
     from given
     where started_at is not null`,
    [worker, reason],
  );
  return rowCount ?? 0;
}

/** True for the one transaction that has this lock now: one process at a time is enough for a duty. */
export async function holdsLock(client: Queryable, name: string): Promise<boolean> {
  const { rows } = await client.query<{ held: boolean }>(
    "select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as held",
    [name],
  );
  return rows[0]!.held;
}

/** How many workers live, beside the given one. */
export async function countWorkers(client: Queryable, except: string | null): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    "select count(*)::int as count from ukemi.workers where ended_at is null and id is distinct from $1",
    [except],
  );
  return rows[0]!.count;
}
