// The version of this package, read once from its package.json.
import { readFileSync } from "node:fs";

const manifest: { version: string } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
) as { version: string };

export const VERSION = manifest.version;
