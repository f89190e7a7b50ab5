// Operations driven by hand: a test makes each step, moves the clock, and says how replayed jobs end.
import type { OperationAlert } from "../../src/observe/alerts.ts";
import { stepOperation } from "../../src/operate/operation-round.ts";
import type { ItemCounts, ItemState } from "../../src/storage/operations.ts";
import type { Pool } from "../../src/storage/postgres.ts";

/** Stops the database's clock, so that a slow machine changes nothing: only the test moves it. */
export async function stopClock(pool: Pool): Promise<void> {
  await pool.query(`
    create or replace function ukemi.now() returns timestamptz language sql stable
    as $$ select timestamptz '2100-01-01' + (select shift from ukemi.clock) $$`);
}

/** Moves the database's clock ahead. */
export async function pass(pool: Pool, ms: number): Promise<void> {
  await pool.query("update ukemi.clock set shift = shift + $1::int * interval '1 ms'", [ms]);
}

/** Makes the steps that are due at this moment, as one process would; returns how many. */
export async function stepNow(pool: Pool, alerts: OperationAlert[] = [], most = 1000): Promise<number> {
  let steps = 0;
  while (steps < most) {
    const stepped = await stepOperation(pool, {
      alert: (alert) => alerts.push(alert),
      tell: () => {},
    });
    if (stepped === undefined) break;
    steps += 1;
  }
  return steps;
}

/** Waits as long as an operation ever waits until it is looked at again, and makes the steps that are due then. */
export async function look(pool: Pool, alerts: OperationAlert[] = []): Promise<void> {
  await pass(pool, 2001);
  await stepNow(pool, alerts);
}

/** Ends jobs that are at work as a worker would: those of these events die, the others are done. Returns how many. */
export async function endJobs(pool: Pool, dying: readonly string[] = [], most = 100_000): Promise<number> {
  const { rowCount } = await pool.query(
    `with ended as (
       select j.id, e.event_id = any($1) as dies
       from ukemi.jobs j
       join ukemi.events e on e.id = j.event
       where j.state in ('ready', 'waiting')
       order by j.id
       limit $2
     )
     update ukemi.jobs j
     set state = case when dies then 'dead' else 'done' end, death = case when dies then 'terminal' end,
       error_class = case when dies then 'StillBroken' end, error_message = case when dies then 'still broken' end,
       finished_at = ukemi.now(), key_held = false, attempt = 1
     from ended
     where j.id = ended.id`,
    [dying, most],
  );
  return rowCount ?? 0;
}

/** The items of an operation by state, counted one by one. */
export async function countItems(pool: Pool, id: string): Promise<Partial<ItemCounts>> {
  const { rows } = await pool.query<{ state: ItemState; count: number }>(
    "select state, count(*)::int as count from ukemi.operation_items where operation = $1 group by state",
    [id],
  );
  return Object.fromEntries(rows.map((row) => [row.state, row.count]));
}

/** How often the audit says that each job was replayed or dropped. */
export async function readChanges(pool: Pool): Promise<ReadonlyMap<number, number>> {
  const { rows } = await pool.query<{ target: string; count: number }>(
    `select target, count(*)::int as count
     from ukemi.audit_log
     where action in ('job.replayed', 'job.dropped')
     group by target`,
  );
  return new Map(rows.map((row) => [Number(row.target), row.count]));
}
