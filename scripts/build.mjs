// Compiles src to dist, unless dist is newer than everything it is made from.
import { chmodSync, existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { run } from "./install.mjs";

const STAMP = "dist/.built";
const INPUTS = ["src", "package.json", "tsconfig.json", "tsconfig.build.json"];

function newest(path) {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}

/** Builds if anything changed since the last build. */
export function ensureBuilt() {
  if (existsSync(STAMP) && statSync(STAMP).mtimeMs > Math.max(...INPUTS.map(newest))) return;
  console.log("Building …");
  // built beside and then moved into place: whoever runs from dist meanwhile never sees half of it
  const fresh = `dist-${process.pid}`;
  const stale = `${fresh}-stale`;
  run(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json", "--outDir", fresh]);
  chmodSync(join(fresh, "cli/bin.js"), 0o755);
  writeFileSync(join(fresh, ".built"), "");
  if (existsSync("dist")) renameSync("dist", stale);
  renameSync(fresh, "dist");
  rmSync(stale, { recursive: true, force: true });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) ensureBuilt();
