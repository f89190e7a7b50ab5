// A Redis for the peer that needs one: Debian's, durable to the last command, gone with the bench.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ending } from "./endings.ts";
import { DEBIAN_FOLDER, DEBIAN_LIBRARIES, REDIS_SERVER } from "../scripts/debian.mjs";

export interface Redis {
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * A 2xx after a commit means here: written and flushed before the answer (`appendfsync always`). No snapshots beside it, and
 * no rewriting of the file: either would run on into the turn of the next contestant.
 */
export const REDIS_SETTINGS = [
  ["appendonly", "yes"],
  ["appendfsync", "always"],
  ["auto-aof-rewrite-percentage", "0"],
  ["save", ""],
  ["maxmemory-policy", "noeviction"],
] as const;

const START_MS = 10_000;

/** Ends with us, however we end: the pipe that it reads from closes then. */
const GUARDED = '"$@" </dev/null & server=$!; read -r _; exec 2>/dev/null; kill -9 $server; wait $server';

/** Starts it; undefined where there is none. */
export async function startRedis(): Promise<Redis | undefined> {
  const file = join(resolve(DEBIAN_FOLDER), REDIS_SERVER);
  if (!existsSync(file)) return undefined;
  const [port, dir] = [await freePort(), await mkdtemp(join(tmpdir(), "ukemi-bench-redis-"))];
  const settings = [["port", String(port)], ["bind", "127.0.0.1"], ["dir", dir], ...REDIS_SETTINGS];
  const child = spawn(
    "sh",
    ["-c", GUARDED, "sh", file, ...settings.flatMap(([name, value]) => [`--${name}`, value])],
    {
      detached: true, // Ctrl-C in the terminal is for us
      stdio: ["pipe", "ignore", "inherit"],
      env: { ...process.env, LD_LIBRARY_PATH: join(resolve(DEBIAN_FOLDER), DEBIAN_LIBRARIES) },
    },
  );
  const stop = ending(() => end(child, dir));
  try {
    await untilItListens(port);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, stop };
}

async function untilItListens(port: number): Promise<void> {
  const endsAt = Date.now() + START_MS;
  while (!(await listens(port))) {
    if (Date.now() > endsAt) throw new Error("redis-server does not listen");
    await sleep(50);
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** At once: nothing of it is wanted. */
async function end(child: ChildProcess, dir: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, "exit");
    child.stdin?.end();
    await ended;
  }
  await rm(dir, { recursive: true, force: true });
}
