// Which Node a program runs on, and what that one must be told to run TypeScript.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

/** The first that runs TypeScript by itself. */
const STRIPS_SINCE = [22, 18] as const;

const require = createRequire(import.meta.url);
const versions = new Map([[process.execPath, process.version]]);

/** Such as "v24.4.0". */
export function versionOf(node: string): string {
  const known = versions.get(node) ?? execFileSync(node, ["--version"], { encoding: "utf8" }).trim();
  versions.set(node, known);
  return known;
}

/** An older one is given a loader; it has done its work before the first clock runs. */
export function argumentsFor(node: string): string[] {
  if (stripsTypes(versionOf(node))) return ["--disable-warning=ExperimentalWarning"];
  return [
    "--import",
    new URL("lib/jiti-register.mjs", pathToFileURL(require.resolve("jiti/package.json"))).href,
  ];
}

export function stripsTypes(version: string): boolean {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  return major > STRIPS_SINCE[0] || (major === STRIPS_SINCE[0] && minor >= STRIPS_SINCE[1]);
}
