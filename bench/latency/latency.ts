// Contest 4: from receipt (or enqueue) to the start of the handler, one at a time, the worker idle. Lower is better.
import type { Bench } from "../bench.ts";
import { figureOf, ratioOf, runContest, spreadOf, type Rounds } from "../contest.ts";
import { startProgram, type Program } from "../programs.ts";
import { startRedis } from "../redis.ts";
import { settingsIn } from "../settings.ts";
import { tableOf } from "../tables.ts";
import { SECRET } from "./delivery.ts";
import type { Sampled } from "./samples.ts";

interface Traveller {
  readonly name: string;
  readonly file: string;
  readonly schema?: boolean;
  /** Somebody else's work: its file begins with its settings. */
  readonly peer?: boolean;
  readonly redis?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly notes: string;
}

interface Started {
  readonly program: Program;
  readonly p99: number[];
}

const SAME = "ukemi, same process";
const LIMIT = "limit: commit by hand, then the handler";
const SAMPLES = 500;
const SECONDS = 5;
const SECONDS_QUICK = 0.7;

const TRAVELLERS: readonly Traveller[] = [
  {
    name: SAME,
    file: "./latency/ukemi.ts",
    schema: true,
    notes: "signed delivery to handler; jobs inserted as claimed",
  },
  {
    name: "ukemi, another process",
    file: "./latency/ukemi.ts",
    schema: true,
    env: { BENCH_WORKER: "other" },
    notes: "signed delivery to handler; told by NOTIFY",
  },
  {
    name: LIMIT,
    file: "./latency/limit.ts",
    schema: true,
    env: { BENCH_SECRET: SECRET },
    notes:
      "signature, one statement that is committed, the handler's call; what is not taken over after a crash",
  },
  {
    name: "graphile-worker",
    file: "./latency/graphile-worker.ts",
    peer: true,
    notes: "addJob to task; concurrency 10, batching off",
  },
  {
    name: "pg-boss",
    file: "./latency/pg-boss.ts",
    peer: true,
    notes: "send to handler; useListenNotify and notify",
  },
  {
    name: "BullMQ",
    file: "./latency/bullmq.ts",
    peer: true,
    redis: true,
    notes: "add to handler; Redis, appendfsync always",
  },
];

export async function measureLatency(bench: Bench): Promise<void> {
  const redis = await startRedis();
  const started = new Map<string, Started>();
  try {
    for (const [index, { name, file, schema = false, redis: needsRedis, env }] of TRAVELLERS.entries()) {
      if (needsRedis && !redis) continue;
      const database = await bench.store.create(`latency_${index}`, { schema });
      const program = await startProgram(file, {
        node: bench.node,
        env: { DATABASE_URL: database, REDIS_PORT: String(redis?.port ?? 0), ...env },
      });
      started.set(name, { program, p99: [] });
    }
    const contestants = [...started].map(([name, { program, p99 }]) => ({
      name,
      async run() {
        const sampled = await sample(bench, program);
        p99.push(sampled.p99);
        return sampled.p50;
      },
    }));
    const figures = await runContest(contestants, bench);
    await report(bench, figures, started);
    judge(bench, figures);
  } finally {
    await Promise.all([...started.values()].map(({ program }) => program.stop()));
    await redis?.stop();
  }
}

/** One run: as many trips as the time allows. */
export function sample({ quick }: Pick<Bench, "quick">, program: Program): Promise<Sampled> {
  return program.ask<Sampled>("measure", { count: SAMPLES, seconds: quick ? SECONDS_QUICK : SECONDS });
}

async function report(bench: Bench, figures: Rounds, started: ReadonlyMap<string, Started>): Promise<void> {
  const rows = TRAVELLERS.map(async ({ name, notes, peer }) => {
    const run = started.get(name);
    return {
      name,
      figure: run && figureOf(figures, name),
      ratio: run && name !== SAME ? ratioOf(figures, name, SAME) : undefined,
      memory: peer ? undefined : await run?.program.memory(),
      notes: run ? `p99 ${spreadOf(run.p99).median.toFixed(1)} ms; ${notes}` : notes,
    };
  });
  bench.report(
    tableOf({
      title: "Latency: receipt to the start of the handler",
      unit: "ms, p50 (lower is better)",
      ratioOf: "theirs ÷ ours (above 1 we are faster)",
      digits: 2,
      rows: await Promise.all(rows),
      remarks: TRAVELLERS.filter(({ peer }) => peer).map(({ file }) => settingsIn(file)),
    }),
  );
}

function judge(bench: Bench, figures: Rounds): void {
  const peers = TRAVELLERS.filter(({ name, peer }) => peer && figures.has(name));
  const toFastest = (ours: string) =>
    Math.max(...peers.map(({ name }) => ratioOf(figures, ours, name).median));
  bench.judge({ bar: "latencyPeers", measured: toFastest(SAME), byHand: toFastest(LIMIT) });
  bench.judge({
    bar: "latency",
    measured: figureOf(figures, SAME).median,
    byHand: figureOf(figures, LIMIT).median,
  });
}
