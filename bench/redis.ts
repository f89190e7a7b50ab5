// A Redis that is as durable as PostgreSQL is by itself: every write is synced before it is answered.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export interface BenchRedis {
  readonly port: number;
  stop(): Promise<void>;
}

/** Where Debian's package is unpacked (BENCH_REDIS names another folder), and where it is installed. */
const FOLDERS = [process.env.BENCH_REDIS ?? "node_modules/.cache/ukemi-debian", "/"];
const PROGRAM = "usr/bin/redis-server";
const START_MS = 5000;

/** Starts one on a free port; undefined where the machine has none. */
export async function startRedis(): Promise<BenchRedis | undefined> {
  const folder = FOLDERS.find((path) => existsSync(join(resolve(path), PROGRAM)));
  if (folder === undefined) return undefined;
  const data = await mkdtemp(join(tmpdir(), "ukemi-bench-redis-"));
  const port = await freePort();
  const settings = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
  const child = spawn(
    join(resolve(folder), PROGRAM),
    [
      "--port",
      String(port),
      "--bind",
      "127.0.0.1",
      "--dir",
      data,
      "--maxmemory-policy",
      "noeviction",
      ...settings,
    ],
    { stdio: "ignore", env: { ...process.env, LD_LIBRARY_PATH: librariesIn(resolve(folder)) } },
  );
  const ended = once(child, "exit");
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
    await rm(data, { recursive: true, force: true });
  };
  if (await answers(port)) return { port, stop };
  await stop();
  return undefined;
}

function librariesIn(folder: string): string {
  const machine = { x64: "x86_64", arm64: "aarch64" }[process.arch as string] ?? process.arch;
  return join(folder, `usr/lib/${machine}-linux-gnu`);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function answers(port: number): Promise<boolean> {
  for (const until = Date.now() + START_MS; Date.now() < until;) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await new Promise<boolean>((tell) => {
      socket.once("connect", () => tell(true));
      socket.once("error", () => tell(false));
    });
    socket.destroy();
    if (isOpen) return true;
    await new Promise((next) => setTimeout(next, 50));
  }
  return false;
}
