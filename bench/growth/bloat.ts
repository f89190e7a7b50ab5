// What half an hour of work leaves behind: the size of the jobs table and its indexes, dead rows, and whether it is slower.
import pg from "pg";
import type { Bench } from "../bench.ts";
import { figureOf, ratioOf, runContest } from "../contest.ts";
import { drainer, startWorker } from "../drain/drain.ts";
import { ONCE } from "../drain/workers.ts";
import type { Program } from "../programs.ts";
import { grouped, size, tableOf } from "../tables.ts";
import { churn } from "./churn.ts";
import { readSizes, rewrite, type Sizes } from "./sizes.ts";

/** Half an hour at 500 jobs a second, as fast as it goes: autovacuum has less time for it than it would have. */
const JOBS = 900_000;
const JOBS_QUICK = 20_000;

const FRESH = "fresh";
const CHURNED = "after the churn";

export async function measureBloat(bench: Bench): Promise<void> {
  const database = await bench.store.create("bloat_churned", { schema: true });
  const { count, seconds } = await churn(bench, {
    database,
    jobs: bench.quick ? JOBS_QUICK : JOBS,
    title: "churn",
  });
  const sizes = await withClient(database, readSizes);
  const programs: Program[] = [];
  const start = async (database: string, first: number) => {
    const env = { BENCH_FIRST: String(first) };
    const program = await startWorker(bench, ONCE, ONCE.workers[0], { database, env });
    programs.push(program);
    return program;
  };
  try {
    const fresh = await start(await bench.store.create("bloat_fresh", { schema: true }), 0);
    const churned = await start(database, JOBS);
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
            notes: `${grouped(count)} jobs in ${Math.round(seconds)} s, as many as in half an hour at ${Math.round(count / 1800)} a second; no-op handlers`,
          },
        ],
        remarks: ["Nothing is vacuumed but by autovacuum, as the migrations set it."],
      }),
    );
    await churned.stop();
    reportSizes(bench, sizes, await withClient(database, rewrite));
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
  }
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
