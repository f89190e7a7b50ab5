// What is on this machine: a system PostgreSQL, memory to keep files in, and what a test run left running.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOM = 4 * 2 ** 30;

/**
 * Where servers of tests that do not ask about the disk keep their data: in memory, if there is room. A database for
 * every test is hundreds of files made and removed, and ext4 without a journal looks at each file that was lately
 * removed before it makes a new one: half a second for a database instead of thirty milliseconds.
 */
export function memoryFolder() {
  const memory = "/dev/shm";
  if (!existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize >= ROOM ? memory : tmpdir();
}

/** The newest system PostgreSQL that Ukemi supports, or undefined. */
export function findPostgres() {
  const folders = ["/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt"];
  const candidates = folders
    .flatMap((folder) =>
      existsSync(folder) ? [folder, ...readdirSync(folder).map((name) => join(folder, name))] : [],
    )
    .map((folder) => join(folder, "bin"))
    .filter((binaries) => existsSync(join(binaries, "initdb")) && existsSync(join(binaries, "postgres")))
    .map((binaries) => ({ binaries, major: majorOf(binaries) }))
    .filter(({ major }) => major >= 15);
  return candidates.toSorted((a, b) => b.major - a.major)[0];
}

function majorOf(binaries) {
  const { stdout } = spawnSync(join(binaries, "postgres"), ["--version"], { encoding: "utf8" });
  return Number(/(\d+)/.exec(stdout ?? "")?.[1] ?? 0);
}

/** Processes that still work below the folder of a finished test run. */
export function leftBehind(folder) {
  if (!existsSync("/proc")) return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
        return line.includes(folder) || environment.includes(folder)
          ? [`process ${pid} ${line.slice(0, 200)}`]
          : [];
      } catch {
        return []; // it has ended meanwhile, or is not ours
      }
    });
}
