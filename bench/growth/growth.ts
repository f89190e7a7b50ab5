// Contest 5: the other contests again, with millions of rows in the tables; ratios to an empty store beside it.
import type { Bench } from "../bench.ts";
import { figureOf, ratioOf, runContest, type Contestant, type Rounds } from "../contest.ts";
import { drainer, startWorker } from "../drain/drain.ts";
import { NOOP, ONCE, type Drain } from "../drain/workers.ts";
import { SECONDS, SECONDS_QUICK, warmUp } from "../ingest/ingest.ts";
import { startUkemi } from "../ingest/servers.ts";
import { shootWith } from "../ingest/shoot.ts";
import { sample } from "../latency/latency.ts";
import { startProgram, type Program } from "../programs.ts";
import { tableOf } from "../tables.ts";
import { churn } from "./churn.ts";
import { EMPTY, makeStores, type GrownStore } from "./stores.ts";

/** One of the other contests, on each of the stores. */
interface Growth {
  readonly what: string;
  readonly unit: string;
  readonly digits?: number;
  /** Milliseconds: less is better, so the ratio is turned round. */
  readonly lower?: boolean;
  start(bench: Bench, stores: readonly GrownStore[]): Promise<Started>;
}

interface Started {
  readonly contestants: readonly Contestant[];
  /** One for each store. */
  readonly programs: readonly Program[];
  stop(): Promise<void>;
}

/** Latency first, as long as nothing is left to do; ingest last, because it leaves everything undone. */
const GROWTHS: readonly Growth[] = [
  { what: "latency in the same process", unit: "ms, p50", digits: 2, lower: true, start: startLatency },
  { what: "drain exactly once", unit: "jobs/s", start: (bench, stores) => startDrain(bench, stores, ONCE) },
  { what: "drain no-op", unit: "jobs/s", start: (bench, stores) => startDrain(bench, stores, NOOP) },
  { what: "ingest", unit: "events/s", start: startIngest },
];

/** Each has numbers of its own for its events: all of them share the stores. */
const NUMBERS = { latency: 100_000_000, update: 200_000_000, none: 300_000_000, first: 400_000_000 };

/**
 * So many jobs go through each store first. Rows that are all of one size leave a little room in every page, and whatever is
 * smaller would be strewn over all of them: in a store that was worked with, that room was used up long ago.
 */
const FIRST_SHARE = 0.04;

export async function measureGrowth(bench: Bench): Promise<void> {
  const stores = await makeStores(bench);
  for (const { name, database } of stores) {
    const jobs = Math.ceil(bench.rows * FIRST_SHARE);
    await churn(bench, { database, jobs, title: `first jobs, ${name}`, first: NUMBERS.first });
  }
  for (const growth of GROWTHS) {
    const { contestants, programs, stop } = await growth.start(bench, stores);
    try {
      const figures = await runContest(contestants, bench);
      await report(bench, growth, { figures, programs });
    } finally {
      await stop();
    }
  }
}

async function report(
  bench: Bench,
  { what, unit, digits = 0, lower = false }: Growth,
  { figures, programs }: { readonly figures: Rounds; readonly programs: readonly Program[] },
): Promise<void> {
  const names = [...figures.keys()];
  const memories = await Promise.all(programs.map((program) => program.memory()));
  const ratio = (name: string) => (lower ? ratioOf(figures, EMPTY, name) : ratioOf(figures, name, EMPTY));
  bench.report(
    tableOf({
      title: `Growth: ${what}`,
      unit,
      ratioOf: lower ? "empty ÷ full" : "full ÷ empty",
      digits,
      rows: names.map((name, index) => ({
        name,
        figure: figureOf(figures, name),
        ratio: name === EMPTY ? undefined : ratio(name),
        memory: memories[index],
      })),
    }),
  );
  for (const name of names.filter((one) => one !== EMPTY)) {
    bench.judge({ bar: "growth", of: `${what}, ${name} ÷ empty`, measured: ratio(name).median });
  }
}

async function startLatency(bench: Bench, stores: readonly GrownStore[]): Promise<Started> {
  const programs = await startEach(stores, ({ database }) =>
    startProgram("./latency/ukemi.ts", {
      node: bench.node,
      env: { DATABASE_URL: database, BENCH_FIRST: String(NUMBERS.latency) },
    }),
  );
  const contestants = stores.map(({ name }, index) => ({
    name,
    run: async () => (await sample(bench, programs[index]!)).p50,
  }));
  return { contestants, programs, stop: () => stopEach(programs) };
}

async function startDrain(bench: Bench, stores: readonly GrownStore[], drain: Drain): Promise<Started> {
  const env = { BENCH_FIRST: String(NUMBERS[drain.effect]) };
  const programs = await startEach(stores, ({ database }) =>
    startWorker(bench, drain, drain.workers[0], { database, env }),
  );
  const contestants = stores.map(({ name }, index) =>
    drainer(bench, [programs[index]!], { name, count: drain.count }),
  );
  return { contestants, programs, stop: () => stopEach(programs) };
}

async function startIngest(bench: Bench, stores: readonly GrownStore[]): Promise<Started> {
  const { run: seconds, warmUp: warmUpSeconds } = bench.quick ? SECONDS_QUICK : SECONDS;
  const loader = await startProgram("./ingest/load.ts", { node: bench.node });
  const servers = await startEach(stores, async ({ name, database }) => {
    const server = await startUkemi(bench, name, database);
    return { ...server, stop: server.program.stop };
  });
  const stop = () => stopEach([...servers, loader]);
  try {
    const shoot = shootWith(loader);
    const most = await warmUp(servers, shoot, warmUpSeconds);
    const contestants = servers.map((server) => ({
      name: server.name,
      run: async () => (await shoot(server, { seconds, perSecond: most(server) })).perSecond,
    }));
    return { contestants, programs: servers.map(({ program }) => program), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts one for each store; where one does not start, none is left. */
async function startEach<T extends Pick<Program, "stop">>(
  stores: readonly GrownStore[],
  start: (store: GrownStore) => Promise<T>,
): Promise<T[]> {
  const started: T[] = [];
  try {
    for (const store of stores) started.push(await start(store));
    return started;
  } catch (error) {
    await stopEach(started);
    throw error;
  }
}

async function stopEach(programs: readonly Pick<Program, "stop">[]): Promise<void> {
  await Promise.all(programs.map((program) => program.stop()));
}
