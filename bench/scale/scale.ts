// Contest 6: several processes on one database, workers and servers; what more of them bring, or cost.
import type { Bench } from "../bench.ts";
import { figureOf, ratioOf, runContest } from "../contest.ts";
import { drainer, startWorker } from "../drain/drain.ts";
import { NOOP, ONCE, type Drain } from "../drain/workers.ts";
import { SECONDS, SECONDS_QUICK, warmUp } from "../ingest/ingest.ts";
import { startUkemi, type Listening } from "../ingest/servers.ts";
import { shootWith } from "../ingest/shoot.ts";
import { startProgram, type Program } from "../programs.ts";
import { tableOf } from "../tables.ts";

const WORKERS = [1, 2, 4];
const SERVERS = [1, 2];

export async function measureScale(bench: Bench): Promise<void> {
  await scaleWorkers(bench, "drain exactly once", ONCE);
  await scaleWorkers(bench, "drain no-op", NOOP);
  await scaleServers(bench);
}

async function scaleWorkers(bench: Bench, what: string, drain: Drain): Promise<void> {
  const database = await bench.store.create(`scale_${drain.effect}`, { schema: true });
  const programs: Program[] = [];
  try {
    for (let number = 0; number < Math.max(...WORKERS); number += 1) {
      programs.push(await startWorker(bench, drain, drain.workers[0], { database }));
    }
    const figures = await runContest(
      WORKERS.map((count) => {
        const [first, ...others] = programs.slice(0, count);
        return drainer(bench, [first!, ...others], { name: nameOf(count, "worker"), count: drain.count });
      }),
      bench,
    );
    await report(bench, { what, unit: "jobs/s", kind: "worker", counts: WORKERS }, figures, programs);
    bench.judge({
      bar: "scale",
      of: what,
      measured: ratioOf(figures, nameOf(4, "worker"), nameOf(1, "worker")).median,
    });
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
  }
}

/** The same 64 connections: one half for each of two. */
async function scaleServers(bench: Bench): Promise<void> {
  const { run: seconds, warmUp: warmUpSeconds } = bench.quick ? SECONDS_QUICK : SECONDS;
  const database = await bench.store.create("scale_ingest", { schema: true });
  const loader = await startProgram("./ingest/load.ts", { node: bench.node });
  const servers: Listening[] = [];
  try {
    for (let number = 1; number <= Math.max(...SERVERS); number += 1) {
      servers.push(await startUkemi(bench, `server ${number}`, database));
    }
    const shoot = shootWith(loader);
    const most = await warmUp(servers, shoot, warmUpSeconds);
    const figures = await runContest(
      SERVERS.map((count) => ({
        name: nameOf(count, "server"),
        async run() {
          const [first, ...others] = servers.slice(0, count);
          const perSecond = most(first!);
          return (await shoot([first!, ...others], { seconds, perSecond })).perSecond;
        },
      })),
      bench,
    );
    const programs = servers.map(({ program }) => program);
    await report(
      bench,
      { what: "ingest", unit: "events/s", kind: "server", counts: SERVERS },
      figures,
      programs,
    );
  } finally {
    await Promise.all([...servers.map(({ program }) => program.stop()), loader.stop()]);
  }
}

interface Scaled {
  readonly what: string;
  readonly unit: string;
  readonly kind: "worker" | "server";
  readonly counts: readonly number[];
}

/** The first process takes part in every run: its memory is the largest. */
async function report(
  bench: Bench,
  { what, unit, kind, counts }: Scaled,
  figures: Parameters<typeof figureOf>[0],
  programs: readonly Program[],
): Promise<void> {
  const memories = await Promise.all(programs.map((program) => program.memory()));
  bench.report(
    tableOf({
      title: `Scale: ${what}`,
      unit,
      ratioOf: "÷ 1 process",
      rows: counts.map((count) => {
        const name = nameOf(count, kind);
        return {
          name,
          figure: figureOf(figures, name),
          ratio: count === 1 ? undefined : ratioOf(figures, name, nameOf(1, kind)),
          memory: Math.max(...memories.slice(0, count)),
          ...(count > 1 && { notes: "memory: of the largest process" }),
        };
      }),
    }),
  );
}

function nameOf(count: number, kind: Scaled["kind"]): string {
  return `${count} ${kind} process${count === 1 ? "" : "es"}`;
}
