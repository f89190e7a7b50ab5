// What half an hour of work leaves behind: the size of the jobs table and its indexes, dead rows, and whether it is slower.
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Bench } from "../bench.ts";
import { figureOf, ratioOf, runContest } from "../contest.ts";
import { drainer, startWorker } from "../drain/drain.ts";
import type { Sample } from "../drain/drainer.ts";
import { ONCE } from "../drain/workers.ts";
import type { Program } from "../programs.ts";
import { progressBar } from "../seed/progress.ts";
import { grouped, size, tableOf } from "../tables.ts";
import { readSizes, rewrite, type Sizes } from "./sizes.ts";

/** Half an hour at 500 jobs a second, as fast as it goes: autovacuum has less time for it than it would have. */
const JOBS = 900_000;
const JOBS_QUICK = 20_000;
/** So many are stored at once, whenever no more than these are left. */
const BATCH = 10_000;
const LOOK_MS = 250;
/** Longer than any machine should need for a batch. */
const STUCK_MS = 60_000;

const FRESH = "fresh";
const CHURNED = "after the churn";

export async function measureBloat(bench: Bench): Promise<void> {
  const worker = ONCE.workers[0];
  const databases = {
    [FRESH]: await bench.store.create("bloat_fresh", { schema: true }),
    [CHURNED]: await bench.store.create("bloat_churned", { schema: true }),
  };
  const programs: Program[] = [];
  try {
    for (const database of Object.values(databases)) {
      programs.push(await startWorker(bench, ONCE, worker, { database }));
    }
    const [fresh, churned] = programs as [Program, Program];
    const count = bench.quick ? JOBS_QUICK : JOBS;
    const seconds = await churn(churned, count);
    const sizes = await withClient(databases[CHURNED], readSizes);
    const figures = await runContest(
      [
        drainer(bench, [fresh], { name: FRESH, count: ONCE.count, vacuum: false }),
        drainer(bench, [churned], { name: CHURNED, count: ONCE.count, vacuum: false }),
      ],
      bench,
    );
    bench.report(
      tableOf({
        title: `Bloat: drain exactly once, after ${grouped(count)} jobs`,
        unit: "jobs/s",
        ratioOf: "after ÷ fresh",
        rows: [
          { name: FRESH, figure: figureOf(figures, FRESH), ratio: undefined, memory: await fresh.memory() },
          {
            name: CHURNED,
            figure: figureOf(figures, CHURNED),
            ratio: ratioOf(figures, CHURNED, FRESH),
            memory: await churned.memory(),
            notes: `${grouped(count)} jobs in ${Math.round(seconds)} s, as many as in half an hour at ${Math.round(count / 1800)} a second`,
          },
        ],
        remarks: ["Nothing is vacuumed but by autovacuum, as the migrations set it."],
      }),
    );
    await churned.stop();
    reportSizes(bench, sizes, await withClient(databases[CHURNED], rewrite));
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
  }
}

/** Lets so many jobs go through the tables; returns how long it took. */
async function churn(program: Program, count: number): Promise<number> {
  const startedAt = performance.now();
  const onProgress = progressBar("churn");
  await program.ask("start");
  let stored = 0;
  let last = { left: 0, at: startedAt };
  for (let left = 0; stored < count || left > 0;) {
    if (stored < count && left <= BATCH) {
      await program.ask("store", { count: Math.min(BATCH, count - stored) });
      stored = Math.min(count, stored + BATCH);
    } else await sleep(LOOK_MS);
    left = (await program.ask<Sample>("sample")).unfinished;
    if (left !== last.left) last = { left, at: performance.now() };
    else if (performance.now() - last.at > STUCK_MS) throw new Error(`${left} jobs are left, and stay so`);
    onProgress({ done: stored - left, total: count, what: `of ${grouped(count)} jobs` });
  }
  await program.ask("stop");
  return (performance.now() - startedAt) / 1000;
}

/** Beside each size, that of the same rows written anew once the rounds were over: the rest is bloat. */
function reportSizes(
  bench: Bench,
  after: Sizes,
  { before, rewritten }: Record<"before" | "rewritten", Sizes>,
) {
  bench.report({
    title: "Bloat: ukemi.jobs",
    columns: ["", "after the churn", "after the rounds", "written anew", "÷ anew", ""],
    rows: after.relations.map(({ name, bytes }, index) => {
      const [then, anew] = [before, rewritten].map(
        ({ relations }) => relations.find((relation) => relation.name === name)?.bytes ?? 0,
      ) as [number, number];
      const dead = `${grouped(after.dead)} dead rows (${grouped(before.dead)} after the rounds), ${after.vacuums} autovacuums`;
      return [name, size(bytes), size(then), size(anew), (then / anew).toFixed(2), index === 0 ? dead : ""];
    }),
  });
}

async function withClient<T>(connectionString: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
