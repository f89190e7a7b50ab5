// pg-boss 12.38. Best documented settings: batches, and `burstWhenBatchFull`, so that it fetches without a pause while there
// is more; the issue's own finding for no-op handlers is batches of 500 to 1000 with two workers. `transactional` opens one
// transaction for a whole batch: the writes of all its handlers commit with their completion, and one that throws takes the
// others with it. Without it, the UPDATE is done on a pool of the handler's own, before the batch is completed.
import { peer } from "../peer.ts";
import { answerDrain, HAS_EFFECT, noteHandled, openBenchPool } from "./drainer.ts";
import { EFFECT, eventOf, type DrainEvent } from "./job.ts";

interface Sql {
  executeSql(text: string, values?: unknown[]): Promise<unknown>;
}
interface Job {
  readonly data: DrainEvent;
}
interface Boss {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: { readonly graceful: boolean }): Promise<void>;
  createQueue(name: string): Promise<void>;
  insert(name: string, jobs: readonly Job[]): Promise<unknown>;
  work(
    name: string,
    options: object,
    handler: (jobs: readonly Job[], tx: Sql) => Promise<void>,
  ): Promise<string>;
  offWork(name: string, options: { readonly wait: boolean }): Promise<void>;
}
const { PgBoss } = await peer<{ readonly PgBoss: new (options: object) => Boss }>("pg-boss");

const QUEUE = "drain";
const INSERT_ROWS = 5000;
const [batchSize, localConcurrency] = process.env.BENCH_BATCH!.split("x").map(Number);
const transactional = process.env.BENCH_TRANSACTIONAL === "on";

const pool = openBenchPool(10);
const boss = new PgBoss({
  connectionString: process.env.DATABASE_URL,
  max: 10 + localConcurrency!,
  schedule: false,
});
boss.on("error", (error) => console.error(error));
await boss.start();
await boss.createQueue(QUEUE);

/** The batch's transaction is one connection: its statements come one after the other anyway. */
async function handle(jobs: readonly Job[], tx: Sql): Promise<void> {
  if (!HAS_EFFECT) return jobs.forEach(noteHandled);
  if (!transactional) return void (await Promise.all(jobs.map(handleOutside)));
  for (const { data } of jobs) {
    await tx.executeSql(EFFECT, [data.data.object.account]);
    noteHandled();
  }
}

async function handleOutside({ data }: Job): Promise<void> {
  await pool.query(EFFECT, [data.data.object.account]);
  noteHandled();
}

await answerDrain({
  async store(first, count) {
    for (let from = first; from < first + count; from += INSERT_ROWS) {
      const length = Math.min(INSERT_ROWS, first + count - from);
      await boss.insert(
        QUEUE,
        Array.from({ length }, (_, index) => ({ data: eventOf(from + index) })),
      );
    }
  },
  async unfinished() {
    const { rows } = await pool.query<{ count: number }>(
      "select count(*)::integer as count from pgboss.job where name = $1 and state < 'completed'",
      [QUEUE],
    );
    return rows[0]!.count;
  },
  async work() {
    const options = { batchSize, localConcurrency, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };
    await boss.work(QUEUE, { ...options, ...(transactional ? { transactional } : {}) }, handle);
    return () => boss.offWork(QUEUE, { wait: true });
  },
  async end() {
    await boss.stop({ graceful: false });
    await pool.end();
  },
});
