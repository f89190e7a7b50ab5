// Who takes part in the ingest contest: each a process with a database of its own.
import { readFileSync } from "node:fs";
import type { Bench } from "../bench.ts";
import { startProgram, type Program } from "../programs.ts";
import { startRedis } from "../redis.ts";
import { settingsIn } from "../settings.ts";

export const SECRET = "whsec_bench_0123456789abcdef0123456789abcdef";
export const UKEMI = "ukemi";
export const LIMIT = "limit: group commit by hand";
export const QUIET = "ukemi, logs and metrics off";
export const ON_MACHINE = "ukemi on this machine's Node";
export const REDIS = "BullMQ (Redis, flushed each time)";
/** What a user would build instead, on the same PostgreSQL. */
export const PEERS = ["graphile-worker", "pg-boss", "DBOS"];

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
  /** Runs on the Node of the machine, not on that of the others. */
  readonly machineNode?: boolean;
}

const WEBHOOK = { file: "./ingest/ukemi.ts", path: "/webhooks/stripe", schema: true };

/** In the order of the table. */
const SERVERS: readonly Server[] = [
  { name: UKEMI, ...WEBHOOK },
  { name: QUIET, ...WEBHOOK, env: { BENCH_LOGS: "off" } },
  { name: ON_MACHINE, ...WEBHOOK, machineNode: true },
  { name: LIMIT, file: "./ingest/limit.ts", schema: true },
  { name: "one insert each", file: "./ingest/insert.ts" },
  { name: "http + signature, no store", file: "./ingest/bare.ts" },
  { name: "graphile-worker", file: "./ingest/graphile-worker.ts", peer: "graphile-worker" },
  { name: "pg-boss", file: "./ingest/pg-boss.ts", peer: "pg-boss" },
  { name: "DBOS", file: "./ingest/dbos.ts", peer: "@dbos-inc/dbos-sdk" },
  { name: REDIS, file: "./ingest/bullmq.ts", peer: "bullmq", redis: true },
];

/** Everyone's name, also those who cannot run here. */
export const SERVER_NAMES = SERVERS.map(({ name }) => name);

/** One that listens. */
export interface Listening {
  readonly name: string;
  readonly path: string;
  readonly port: number;
  readonly database: string;
  readonly program: Program;
}

export interface Listeners {
  readonly servers: readonly Listening[];
  stop(): Promise<void>;
}

/** Starts everyone who can run here. */
export async function startServers(bench: Bench): Promise<Listeners> {
  const redis = await startRedis();
  const servers: Listening[] = [];
  const stop = async () => {
    await Promise.all(servers.map(({ program }) => program.stop()));
    await redis?.stop();
  };
  try {
    for (const [index, server] of SERVERS.entries()) {
      if (server.redis && !redis) continue;
      if (server.machineNode && bench.machineNode === undefined) continue;
      const database = await bench.store.create(`ingest_${index}`, { schema: server.schema ?? false });
      const env = redis ? { REDIS_PORT: String(redis.port) } : {};
      servers.push(await startOne(bench, server, { database, env }));
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { servers, stop };
}

/** Starts Ukemi on a database that has its schema. */
export function startUkemi(bench: Bench, name: string, database: string): Promise<Listening> {
  return startOne(bench, { name, ...WEBHOOK }, { database, env: {} });
}

async function startOne(
  { node, machineNode }: Bench,
  server: Server,
  { database, env }: { readonly database: string; readonly env: Readonly<Record<string, string>> },
): Promise<Listening> {
  const program = await startProgram(server.file, {
    node: (server.machineNode && machineNode) || node,
    env: { DATABASE_URL: database, BENCH_SECRET: SECRET, ...env, ...server.env },
  });
  const port = await program.ask<number>("port");
  return { name: server.name, path: server.path ?? "/", port, database, program };
}

/** True for a process of Ukemi. */
export function isOurs(name: string): boolean {
  return SERVERS.some((server) => server.name === name && server.file === WEBHOOK.file);
}

/** The server of that name. */
export function named(servers: readonly Listening[], name: string): Listening {
  const server = servers.find((one) => one.name === name);
  if (!server) throw new Error(`${name} does not listen`);
  return server;
}

/** How each peer is set: what its file says of itself, and its version. */
export function peerSettings(): string[] {
  const { dependencies } = JSON.parse(
    readFileSync(new URL("../peers/package.json", import.meta.url), "utf8"),
  ) as { readonly dependencies: Readonly<Record<string, string>> };
  return SERVERS.flatMap(({ file, peer }) =>
    peer === undefined ? [] : `${settingsIn(file)} (${peer} ${dependencies[peer]})`,
  );
}
