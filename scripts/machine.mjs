// What is on this machine: a system PostgreSQL, and what a test run left running.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

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
