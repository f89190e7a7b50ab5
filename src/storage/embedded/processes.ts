// What stands behind a pid: the server of this very folder, somebody else, or nobody.
import { execFile } from "node:child_process";
import { readFile, readdir, readlink } from "node:fs/promises";
import { basename } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

/** A pid, seen from one cluster folder. A zombie has ended but still bears its number. */
export type Sighting = "ours" | "other" | "zombie" | "gone";

/** How often a server that is not our child is looked at. */
const watchMs = 200;

interface Process {
  /** State letter as `ps` gives it. */
  readonly state: string;
  readonly name: string;
  /** Tells two processes with the same pid apart. */
  readonly startedAt: string;
}

/** Looks at a pid that `postmaster.pid` of the cluster names. */
export async function sight(pid: number, cluster: string): Promise<Sighting> {
  const process = await inspect(pid);
  if (!process) return "gone";
  if (process.state.startsWith("Z") || process.state.startsWith("X")) return "zombie";
  return process.name === "postgres" && (await runsOn(pid, cluster)) ? "ours" : "other";
}

/** Identifies a process beyond its pid; undefined where it has ended. */
export async function startedAt(pid: number): Promise<string | undefined> {
  const process = await inspect(pid);
  return process && !process.state.startsWith("Z") ? process.startedAt : undefined;
}

/** Backends of this cluster that outlived their postmaster. Empty where there is no /proc to ask. */
export async function strays(cluster: string): Promise<readonly number[]> {
  const pids = (await readdir("/proc").catch(() => [])).map(Number).filter((pid) => pid > 1);
  const found: number[] = [];
  for (const pid of pids) if ((await sight(pid, cluster)) === "ours") found.push(pid);
  return found;
}

/** Asks again and again whether something is still there. `ended` settles when it is not, or on `cease`. */
export function watchEnd(isThere: () => Promise<boolean>): { readonly ended: Promise<void>; cease(): void } {
  const ceasing = new AbortController();
  async function watch(): Promise<void> {
    while (!ceasing.signal.aborted && (await isThere())) {
      // Unlike `sleep` of the clock this does not keep the process alive.
      await delay(watchMs, undefined, { ref: false, signal: ceasing.signal }).catch(() => undefined);
    }
  }
  return { ended: watch(), cease: () => ceasing.abort() };
}

async function inspect(pid: number): Promise<Process | undefined> {
  if (process.platform !== "linux") return await inspectByPs(pid);
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  if (stat === undefined) return undefined;
  // "pid (name) state ppid …": a name may hold blanks and brackets, so cut at the last one.
  const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0] ?? "", name, startedAt: fields[19] ?? "" };
}

async function inspectByPs(pid: number): Promise<Process | undefined> {
  const line = await ps(pid, "stat=,lstart=,comm=");
  const [, state, startedAt, command] = /^\s*(\S+)\s+(\S+ \S+ +\S+ \S+ \S+)\s+(.*)$/.exec(line) ?? [];
  if (state === undefined || startedAt === undefined) return undefined;
  return { state, startedAt, name: basename(command?.trim() ?? "") };
}

/** PostgreSQL stands in its data folder; where that cannot be seen, its command line names it. */
async function runsOn(pid: number, cluster: string): Promise<boolean> {
  if (process.platform !== "linux") return (await ps(pid, "command=")).includes(cluster);
  const stands = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
  if (stands !== undefined) return stands === cluster;
  const args = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
  return args.includes(cluster);
}

async function ps(pid: number, format: string): Promise<string> {
  const { stdout } = await promisify(execFile)("ps", ["-ww", "-o", format, "-p", String(pid)]).catch(() => ({
    stdout: "",
  }));
  return stdout.trim();
}
