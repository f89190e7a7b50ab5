// Tools that `npm test` unpacked from Debian's packages.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { DEBIAN_FOLDER, DEBIAN_LIBRARIES } from "../../scripts/debian.mjs";

/** The path of a file of those packages; undefined where it could not be fetched, and `npm test` then says so. */
export function debianFile(path: string): string | undefined {
  const file = join(resolve(DEBIAN_FOLDER), path.replace("LIBRARIES", DEBIAN_LIBRARIES));
  return existsSync(file) ? file : undefined;
}
