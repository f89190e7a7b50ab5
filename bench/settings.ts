// How each peer is set is said at the top of its file; the results repeat it.
import { readFileSync } from "node:fs";

/** The comment that a program begins with, as one line. */
export function settingsIn(file: string): string {
  const lines = readFileSync(new URL(file, import.meta.url), "utf8").split("\n");
  const end = lines.findIndex((line) => !line.startsWith("//"));
  return lines
    .slice(0, end)
    .map((line) => line.replace(/^\/\/ ?/, ""))
    .join(" ");
}
