// Who occupies the cluster: reads postmaster.pid, and clears away what a killed server left behind.
import { readFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { sleep, steadyMs } from "../../clock.ts";
import { ifMissing } from "./folder.ts";
import { sight, strays } from "./processes.ts";
import type { Sighting } from "./processes.ts";

/** What postmaster.pid says. */
export interface Occupant {
  readonly pid: number;
  readonly port: number;
  /** True once the server takes connections. */
  readonly ready: boolean;
}

/** The server that holds, or held, the cluster; undefined where the cluster is free. */
export async function readOccupant(cluster: string): Promise<Occupant | undefined> {
  const text = await readFile(join(cluster, "postmaster.pid"), "utf8").catch(ifMissing(undefined));
  if (text === undefined) return undefined;
  const lines = text.split("\n");
  // A server killed while writing the file leaves it short: pid 0 is nobody.
  return { pid: Number(lines[0]) || 0, port: Number(lines[3]) || 0, ready: lines[7]?.trim() === "ready" };
}

/** Whether the occupant lives. */
export async function sightOccupant({ pid }: Occupant, cluster: string): Promise<Sighting> {
  return pid > 1 ? await sight(pid, cluster) : "gone";
}

/**
 * Makes room after a server that did not shut down. PostgreSQL sees for itself that a pid is gone, but a zombie or
 * a stranger that now bears the number would block it for ever. Call it with the lock held, and only for a pid that
 * is not `ours`.
 */
export async function evictDead(occupant: Occupant, cluster: string): Promise<void> {
  await endStrays(cluster);
  const now = await readOccupant(cluster);
  if (now?.pid !== occupant.pid) return; // a new server has taken the folder meanwhile
  await rm(join(cluster, "postmaster.pid"), { force: true });
  for (const entry of await readdir(cluster)) {
    if (entry.startsWith(".s.PGSQL.")) await rm(join(cluster, entry), { force: true });
  }
}

/** Backends without a postmaster end by themselves, but one in a long query only when it is done: hurry it. */
async function endStrays(cluster: string): Promise<void> {
  const deadline = steadyMs() + 5_000;
  for (let left = await strays(cluster); left.length > 0; left = await strays(cluster)) {
    for (const pid of left) signal(pid, "SIGQUIT");
    if (steadyMs() > deadline) return; // PostgreSQL itself refuses to start beside them
    await sleep(20);
  }
}

// A fast shutdown, then one without a last checkpoint, then by force: whatever was committed is recovered.
const endings = [
  ["SIGINT", 10_000],
  ["SIGQUIT", 10_000],
  ["SIGKILL", 5_000],
] as const;

/** Ends the server of this cluster. Does nothing to any other process. */
export async function endServer(pid: number, cluster: string): Promise<void> {
  for (const [name, patienceMs] of endings) {
    if ((await sight(pid, cluster)) !== "ours") return;
    signal(pid, name);
    if (await isGone(pid, cluster, patienceMs)) return;
  }
}

/** Waits for the server to end. */
export async function isGone(pid: number, cluster: string, withinMs: number): Promise<boolean> {
  const deadline = steadyMs() + withinMs;
  while ((await sight(pid, cluster)) === "ours") {
    if (steadyMs() > deadline) return false;
    await sleep(10);
  }
  return true;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended just now.
  }
}
