// Who takes part in the ingest contest: each a process with a database of its own.
import { readFileSync } from "node:fs";
import { startProgram, type Program } from "../programs.ts";
import { startRedis, type Redis } from "../redis.ts";
import type { Bench } from "../run.ts";

export const SECRET = "whsec_bench_0123456789abcdef0123456789abcdef";
export const UKEMI = "ukemi";
export const LIMIT = "limit: group commit by hand";
const QUIET = "ukemi, logs and metrics off";

interface Server {
  readonly name: string;
  readonly file: string;
  readonly path?: string;
  /** Wants the schema of Ukemi in its database. */
  readonly schema?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** Somebody else's work, by its package: its file begins with its settings. */
  readonly peer?: string;
  readonly redis?: boolean;
}

const WEBHOOK = { file: "./ingest/ukemi.ts", path: "/webhooks/stripe", schema: true };

/** In the order of the table. */
const SERVERS: readonly Server[] = [
  { name: UKEMI, ...WEBHOOK },
  { name: QUIET, ...WEBHOOK, env: { BENCH_LOGS: "off" } },
  { name: LIMIT, file: "./ingest/limit.ts", schema: true },
  { name: "one insert each", file: "./ingest/insert.ts" },
  { name: "http + signature, no store", file: "./ingest/bare.ts" },
  { name: "graphile-worker", file: "./ingest/graphile-worker.ts", peer: "graphile-worker" },
  { name: "pg-boss", file: "./ingest/pg-boss.ts", peer: "pg-boss" },
  { name: "DBOS", file: "./ingest/dbos.ts", peer: "@dbos-inc/dbos-sdk" },
  { name: "BullMQ (Redis, flushed each time)", file: "./ingest/bullmq.ts", peer: "bullmq", redis: true },
];

/** Everyone's name, also those who cannot run here. */
export const SERVER_NAMES = SERVERS.map(({ name }) => name);

/** One that listens. */
export interface Listening {
  readonly name: string;
  readonly path: string;
  readonly port: number;
  readonly database: string;
}

export interface Listeners {
  readonly servers: readonly Listening[];
  stop(): Promise<void>;
}

/** Starts everyone who can run here. */
export async function startServers({ store, node }: Bench): Promise<Listeners> {
  const redis = await startRedis();
  const programs: Program[] = [];
  const servers: Listening[] = [];
  const stop = () => stopAll(programs, redis);
  try {
    for (const [index, server] of SERVERS.entries()) {
      if (server.redis && !redis) continue;
      const database = await store.create(`ingest_${index}`, { schema: server.schema ?? false });
      const redisPort = redis ? { REDIS_PORT: String(redis.port) } : {};
      const env = { DATABASE_URL: database, BENCH_SECRET: SECRET, ...redisPort, ...server.env };
      const program = await startProgram(server.file, { node, env });
      programs.push(program);
      const port = await program.ask<number>("port");
      servers.push({ name: server.name, path: server.path ?? "/", port, database });
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { servers, stop };
}

/** The server of that name. */
export function named(servers: readonly Listening[], name: string): Listening {
  const server = servers.find((one) => one.name === name);
  if (!server) throw new Error(`${name} does not listen`);
  return server;
}

async function stopAll(programs: readonly Program[], redis: Redis | undefined): Promise<void> {
  await Promise.all(programs.map((program) => program.stop()));
  await redis?.stop();
}

/** How each peer is set: what its file says of itself, and its version. */
export function peerSettings(): string[] {
  const { dependencies } = JSON.parse(read("./peers/package.json")) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  return SERVERS.flatMap(({ file, peer }) =>
    peer === undefined ? [] : `${firstComment(read(file))} (${peer} ${dependencies[peer]})`,
  );
}

function read(file: string): string {
  return readFileSync(new URL(`../${file}`, import.meta.url), "utf8");
}

function firstComment(source: string): string {
  const lines = source.split("\n");
  return lines
    .slice(
      0,
      lines.findIndex((line) => !line.startsWith("//")),
    )
    .map((line) => line.replace(/^\/\/ ?/, ""))
    .join(" ");
}
