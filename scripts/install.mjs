// Installs what the lock file asks for, if it is not there already.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const STAMP = "node_modules/.ukemi-installed";

/** A clone is ready when the last install was of this very lock file and had at least these parts. */
function wanted(scope) {
  const digest = createHash("sha256").update(readFileSync("package-lock.json")).digest("hex");
  return { scope, digest };
}

function installed(scope) {
  if (!existsSync(STAMP)) return false;
  const [digest, had] = readFileSync(STAMP, "utf8").split(" ");
  return digest === wanted(scope).digest && (had === "all" || had === scope);
}

/**
 * @param {"root" | "all"} scope the package alone (enough to build and run), or the examples too (for the tests)
 */
export function ensureInstalled(scope) {
  requireNode();
  if (installed(scope)) return;
  console.log("Installing dependencies …");
  const only = scope === "root" ? ["--workspaces=false"] : [];
  run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error", ...only]);
  writeFileSync(STAMP, `${wanted(scope).digest} ${scope}`);
}

function requireNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  console.error(`Node ${process.versions.node} is too old: Ukemi needs 20.19 or newer.`);
  process.exit(2);
}

/** Runs a command with its output shown; ends this process with its exit code if it fails. */
export function run(command, args, env = {}) {
  const { status, signal, error } = spawnSync(command, args, {
    stdio: "inherit",
    env: { ...process.env, ...env },
    shell: process.platform === "win32",
  });
  if (error) throw error;
  if (status !== 0) {
    console.error(`\n${command} ${args.join(" ")} failed (${signal ?? `exit ${status}`}).`);
    process.exit(status ?? 1);
  }
}
