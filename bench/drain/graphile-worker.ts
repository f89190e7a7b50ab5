// graphile-worker 0.18. Settings: those of its own performance page (24 jobs at once, a pool of 25, a local queue of 500, and
// completions that share a statement). A task has no transaction with its job: the UPDATE is committed before the job is.
import { peer } from "../peer.ts";
import { answerDrain, HAS_EFFECT, noteHandled, openBenchPool } from "./drainer.ts";
import { EFFECT, eventSql, TEMPLATE, type DrainEvent } from "./job.ts";

interface Helpers {
  query(text: string, values: unknown[]): Promise<unknown>;
}
interface GraphileWorker {
  readonly Logger: new (factory: () => () => void) => unknown;
  run(options: object): Promise<{ stop(): Promise<void> }>;
  runMigrations(options: object): Promise<void>;
}
const { Logger, run, runMigrations } = await peer<GraphileWorker>("graphile-worker");

const STORE_ROWS = 10_000;
const preset = {
  worker: {
    connectionString: process.env.DATABASE_URL,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger: new Logger(() => () => {}),
  },
};

const pool = openBenchPool(1);
await runMigrations({ preset });

const taskList = {
  async drain(payload: DrainEvent, { query }: Helpers) {
    if (HAS_EFFECT) await query(EFFECT, [payload.data.object.account]);
    noteHandled();
  },
};

await answerDrain({
  async store(first, count) {
    for (let from = first; from < first + count; from += STORE_ROWS) {
      await pool.query(
        `select count(*) from graphile_worker.add_jobs(array(
           select row('drain', ${eventSql("n")}::json, null, null, null, null, null, null)::graphile_worker.job_spec
           from generate_series($2::integer, $3::integer) as n
         ))`,
        [TEMPLATE, from, Math.min(from + STORE_ROWS, first + count) - 1],
      );
    }
  },
  async unfinished() {
    const { rows } = await pool.query<{ count: number }>(
      "select count(*)::integer as count from graphile_worker._private_jobs",
    );
    return rows[0]!.count;
  },
  async work() {
    const runner = await run({ preset, taskList, noHandleSignals: true });
    return () => runner.stop();
  },
  end: () => pool.end(),
});
