// Contests 2 and 3: stored events are drained by one worker process each, with an effect exactly once, and with no-op handlers.
import type { Bench } from "../bench.ts";
import { figureOf, ratioOf, runContest, type Contestant, type Rounds } from "../contest.ts";
import { versionOf } from "../nodes.ts";
import { startProgram, type Program } from "../programs.ts";
import { startRedis } from "../redis.ts";
import { settingsIn } from "../settings.ts";
import { tableOf } from "../tables.ts";
import { CLOCK, CLOCK_QUICK, drainFor, QUICK_SHARE } from "./clock.ts";
import { NOOP, ONCE, type Drain, type Worker } from "./workers.ts";

export const measureDrain = (bench: Bench) => measure(bench, ONCE);
export const measureNoop = (bench: Bench) => measure(bench, NOOP);

async function measure(bench: Bench, drain: Drain): Promise<void> {
  const redis = drain.workers.some((worker) => worker.redis) ? await startRedis() : undefined;
  const started = new Map<string, Program>();
  try {
    for (const [index, worker] of drain.workers.entries()) {
      if (worker.redis && !redis) continue;
      if (worker.machineNode && bench.machineNode === undefined) continue;
      const schema = worker.schema ?? false;
      const database = await bench.store.create(`drain_${drain.effect}_${index}`, { schema });
      const env = { REDIS_PORT: String(redis?.port ?? 0) };
      started.set(worker.name, await startWorker(bench, drain, worker, { database, env }));
    }
    const contestants = drain.workers.flatMap((worker) => {
      const program = started.get(worker.name);
      return program
        ? drainer(bench, [program], { name: worker.name, count: worker.count ?? drain.count })
        : [];
    });
    const figures = await runContest(contestants, bench);
    await report(bench, drain, { figures, started });
    for (const { bar, ours = drain.workers[0].name, theirs, byHand } of drain.bars) {
      const ratio = (name: string) =>
        figures.has(name) && figures.has(theirs) ? ratioOf(figures, name, theirs).median : undefined;
      bench.judge({ bar, measured: ratio(ours), byHand: byHand === undefined ? undefined : ratio(byHand) });
    }
  } finally {
    await Promise.all([...started.values()].map((program) => program.stop()));
    await redis?.stop();
  }
}

/** Starts a worker of the contest on a database. */
export async function startWorker(
  { node, machineNode }: Pick<Bench, "node" | "machineNode">,
  { effect }: Drain,
  worker: Worker,
  { database, env = {} }: { readonly database: string; readonly env?: Readonly<Record<string, string>> },
): Promise<Program> {
  return startProgram(worker.file, {
    node: (worker.machineNode && machineNode) || node,
    env: { DATABASE_URL: database, BENCH_EFFECT: effect, ...env, ...worker.env },
  });
}

export interface DrainerOptions {
  readonly name: string;
  /** So many jobs are there before each run, at the least. */
  readonly count: number;
  /** False leaves this to autovacuum. @default true */
  readonly vacuum?: boolean;
}

/** A contestant whose processes, one or several, drain one database. */
export function drainer(
  { quick }: Pick<Bench, "quick">,
  programs: readonly [Program, ...Program[]],
  { name, count, vacuum = true }: DrainerOptions,
): Contestant {
  let stored = Math.round(quick ? count * QUICK_SHARE : count);
  return {
    name,
    /** Whoever is faster than was thought gets more to do, and runs again. */
    async run() {
      for (;;) {
        await programs[0].ask("fill", { count: stored });
        if (vacuum) await programs[0].ask("vacuum");
        const { perSecond, hadEnough } = await drainFor(programs, quick ? CLOCK_QUICK : CLOCK);
        if (hadEnough) return perSecond;
        stored *= 2;
      }
    },
  };
}

interface Ran {
  readonly figures: Rounds;
  readonly started: ReadonlyMap<string, Program>;
}

async function report(bench: Bench, { title, workers }: Drain, { figures, started }: Ran): Promise<void> {
  const [ours] = workers;
  const rows = workers.map(async ({ name, notes, machineNode, file }) => {
    const program = started.get(name);
    const version = machineNode && bench.machineNode ? `${versionOf(bench.machineNode)}; ` : "";
    return {
      name,
      figure: program && figureOf(figures, name),
      ratio: program && name !== ours.name ? ratioOf(figures, ours.name, name) : undefined,
      memory: file === ours.file ? await program?.memory() : undefined,
      notes: `${version}${notes}`,
    };
  });
  bench.report(
    tableOf({
      title,
      unit: "jobs/s",
      rows: await Promise.all(rows),
      remarks: [...new Set(workers.filter(({ peer }) => peer).map(({ file }) => settingsIn(file)))],
    }),
  );
}
