// Contests 2 and 3: stored events are drained by one worker process each, with an effect exactly once, and with no-op handlers.
import { figureOf, ratioOf, runContest, type Contestant } from "../contest.ts";
import { startProgram, type Program } from "../programs.ts";
import { startRedis } from "../redis.ts";
import type { Bench } from "../run.ts";
import { settingsIn } from "../settings.ts";
import type { Clock, Drained } from "./drainer.ts";

/** One row of a table. */
interface Worker {
  readonly name: string;
  readonly file: string;
  readonly schema?: boolean;
  /** Somebody else's work: its file begins with its settings. */
  readonly peer?: boolean;
  readonly redis?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** How many jobs are stored before each run, where it is not the usual number. */
  readonly count?: number;
  readonly notes: string;
}

interface Drain {
  readonly title: string;
  readonly effect: "update" | "none";
  /** More than anybody finishes in the time; the clock ends early where somebody does. */
  readonly count: number;
  readonly workers: readonly Worker[];
}

const CLOCK: Clock = { warmSeconds: 1, seconds: 3 };
const CLOCK_QUICK: Clock = { warmSeconds: 0.5, seconds: 0.8 };
/** In a short run fewer are needed, and storing them is not measured. */
const QUICK_SHARE = 0.3;

const ONCE: Drain = {
  title: "Drain, exactly once: one UPDATE in each job's transaction",
  effect: "update",
  count: 50_000,
  workers: [
    {
      name: "ukemi",
      file: "./drain/ukemi.ts",
      schema: true,
      env: { BENCH_CONCURRENCY: "16" },
      notes: "one commit for each job; concurrency 16, logs and metrics on",
    },
    {
      name: "limit: one-flush transaction by hand",
      file: "./drain/limit-once.ts",
      schema: true,
      env: { BENCH_BATCH: "1x8" },
      notes: "one commit for each job, pipelined, 8 lanes; no outcomes",
    },
    {
      name: "limit: 100 effects per commit by hand",
      file: "./drain/limit-once.ts",
      schema: true,
      env: { BENCH_BATCH: "100x4" },
      notes: "one that fails takes 99 others with it; pipelined, 4 lanes; no outcomes",
    },
    {
      name: "pg-boss transactional",
      file: "./drain/pg-boss.ts",
      peer: true,
      env: { BENCH_BATCH: "50x8", BENCH_TRANSACTIONAL: "on" },
      notes: "one commit for a batch of 50, 8 workers: one that fails takes 49 others with it",
    },
    {
      name: "pg-boss, UPDATE outside",
      file: "./drain/pg-boss.ts",
      peer: true,
      env: { BENCH_BATCH: "500x2" },
      notes: "weaker promise: at least once; batches of 500, 2 workers",
    },
    {
      name: "graphile-worker, UPDATE outside",
      file: "./drain/graphile-worker.ts",
      peer: true,
      notes: "weaker promise: at least once; 24 jobs at once, local queue of 500, completions batched",
    },
    {
      name: "DBOS",
      file: "./drain/dbos.ts",
      peer: true,
      count: 10_000,
      notes: "a workflow with one transaction step; worker concurrency 100, polled every 20 ms",
    },
  ],
};

const NOOP: Drain = {
  title: "Drain, no-op handlers",
  effect: "none",
  count: 80_000,
  workers: [
    {
      name: "ukemi",
      file: "./drain/ukemi.ts",
      schema: true,
      env: { BENCH_CONCURRENCY: "500" },
      notes: "concurrency 500, logs and metrics on",
    },
    {
      name: "limit: claim and complete 500 by hand",
      file: "./drain/limit-noop.ts",
      schema: true,
      notes: "2 lanes; no outcomes",
    },
    {
      name: "graphile-worker",
      file: "./drain/graphile-worker.ts",
      peer: true,
      notes: "24 jobs at once, local queue of 500, completions batched",
    },
    {
      name: "pg-boss",
      file: "./drain/pg-boss.ts",
      peer: true,
      env: { BENCH_BATCH: "1000x2" },
      notes: "batches of 1000, 2 workers: one that fails takes its batch with it",
    },
    {
      name: "BullMQ",
      file: "./drain/bullmq.ts",
      peer: true,
      redis: true,
      notes: "Redis, appendfsync always; concurrency 200",
    },
  ],
};

export const measureDrain = (bench: Bench) => measure(bench, ONCE);
export const measureNoop = (bench: Bench) => measure(bench, NOOP);

async function measure(bench: Bench, drain: Drain): Promise<void> {
  const redis = drain.workers.some((worker) => worker.redis) ? await startRedis() : undefined;
  const able = drain.workers.filter((worker) => !worker.redis || redis !== undefined);
  const started = new Map<string, Program>();
  try {
    for (const [index, worker] of able.entries()) {
      const name = `drain_${drain.effect}_${index}`;
      const env = {
        DATABASE_URL: await bench.store.create(name, { schema: worker.schema ?? false }),
        BENCH_EFFECT: drain.effect,
        REDIS_PORT: String(redis?.port ?? 0),
        ...worker.env,
      };
      started.set(worker.name, await startProgram(worker.file, { node: bench.node, env }));
    }
    const contestants = able.map((worker) =>
      contestantOf(bench, started.get(worker.name)!, { ...worker, count: worker.count ?? drain.count }),
    );
    const figures = await runContest(contestants, bench);
    const [ours] = drain.workers;
    bench.report({
      title: drain.title,
      unit: "jobs/s",
      rows: drain.workers.map((worker) => ({
        name: worker.name,
        figure: started.has(worker.name) ? figureOf(figures, worker.name) : undefined,
        ratio:
          started.has(worker.name) && worker !== ours ? ratioOf(figures, ours!.name, worker.name) : undefined,
        notes: worker.notes,
      })),
      remarks: [...new Set(drain.workers.filter(({ peer }) => peer).map(({ file }) => settingsIn(file)))],
    });
  } finally {
    await Promise.all([...started.values()].map((program) => program.stop()));
    await redis?.stop();
  }
}

function contestantOf(
  { quick }: Bench,
  program: Program,
  { name, count }: { name: string; count: number },
): Contestant {
  return {
    name,
    async run() {
      await program.ask("fill", { count: Math.round(quick ? count * QUICK_SHARE : count) });
      const { perSecond } = await program.ask<Drained>("drain", quick ? CLOCK_QUICK : CLOCK);
      return perSecond;
    },
  };
}
