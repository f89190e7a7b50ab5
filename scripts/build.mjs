// Compiles src to dist, unless dist is newer than everything it is made from.
import { chmodSync, existsSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
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
  rmSync("dist", { recursive: true, force: true });
  run(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"]);
  chmodSync("dist/cli/bin.js", 0o755);
  writeFileSync(STAMP, "");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) ensureBuilt();
