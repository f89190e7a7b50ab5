// Contest 1: verify, commit durably, answer 204. One server process each, 64 connections, every event with its own id.
import { ratioOf, figureOf, runContest, type Contestant } from "../contest.ts";
import { startProgram, type Program } from "../programs.ts";
import type { Bench } from "../run.ts";
import type { Loaded } from "./load.ts";

const SECRET = "whsec_bench_0123456789abcdef0123456789abcdef";
const CONNECTIONS = 64;
const SECONDS = 3;
/** More than any server here answers in that time. */
const PER_SECOND_MOST = 45_000;

interface Server {
  readonly name: string;
  readonly file: string;
  readonly path: string;
  readonly schema?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

const SERVERS: readonly Server[] = [
  { name: "ukemi", file: "./ingest/ukemi.ts", path: "/webhooks/stripe", schema: true },
  { name: "limit: group commit by hand", file: "./ingest/limit.ts", path: "/", schema: true },
  { name: "one insert each", file: "./ingest/insert.ts", path: "/" },
  { name: "http + signature, no store", file: "./ingest/bare.ts", path: "/" },
];

export async function measureIngest({ store, node, rounds, report, onRun }: Bench): Promise<void> {
  const loader = await startProgram("./ingest/load.ts", { node });
  const started: { server: Server; program: Program; port: number; p99: number[] }[] = [];
  try {
    for (const [index, server] of SERVERS.entries()) {
      const database = await store.create(`ingest_${index}`, { schema: server.schema ?? false });
      const env = { DATABASE_URL: database, BENCH_SECRET: SECRET, ...server.env };
      const program = await startProgram(server.file, { node, env });
      started.push({ server, program, port: await program.ask<number>("port"), p99: [] });
    }
    const contestants = started.map(({ server, port, p99 }): Contestant => ({
      name: server.name,
      async run() {
        await loader.ask("prepare", { count: PER_SECOND_MOST * SECONDS, path: server.path, secret: SECRET });
        const loaded = await loader.ask<Loaded>("load", { port, connections: CONNECTIONS, seconds: SECONDS });
        if (loaded.failed > 0) throw new Error(`${server.name} refused ${loaded.failed} events`);
        p99.push(loaded.p99);
        return loaded.perSecond;
      },
    }));
    const figures = await runContest(contestants, { rounds, onRun });
    report({
      title: "Ingest",
      unit: "events/s",
      rows: started.map(({ server: { name }, p99 }) => ({
        name,
        figure: figureOf(figures, name),
        ratio: name === "ukemi" ? undefined : ratioOf(figures, "ukemi", name),
        notes: `p99 ${p99.toSorted((a, b) => a - b)[Math.floor(p99.length / 2)]!.toFixed(1)} ms`,
      })),
    });
  } finally {
    await Promise.all(started.map(({ program }) => program.stop()));
    await loader.stop();
  }
}
