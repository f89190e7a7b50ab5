// The platform package ships its library links as a list, made real by an install script. Where scripts
// were not run the links are missing and postgres exits with 127, so they are made here, at every start.
import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, rm, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { UkemiError } from "../../errors.ts";

interface Link {
  /** The library file, relative to the package. */
  readonly source: string;
  /** The name under which it is wanted, in the same folder. */
  readonly target: string;
}

/**
 * Makes the missing links, beside the libraries or, where that folder is read-only, in `shim`.
 * Returns the shim folder when `LD_LIBRARY_PATH` must name it.
 */
export async function linkLibraries(binaries: string, shim: string): Promise<string | undefined> {
  const native = dirname(binaries);
  const missing = (await readLinks(native)).filter((link) => !existsSync(inPackage(native, link.target)));
  if (missing.length === 0) return undefined;
  try {
    for (const { source, target } of missing) await makeLink(basename(source), inPackage(native, target));
    return undefined;
  } catch (error) {
    if (!isReadOnly(error)) throw error;
  }
  if (/[:;]/.test(shim)) {
    throw new UkemiError(
      "embedded_failed",
      `Libraries of the embedded PostgreSQL must be linked into ${shim}, but the loader splits that path at ":" and ";". ` +
        "Choose a data folder without them, or install the packages with their scripts.",
    );
  }
  await mkdir(shim, { recursive: true, mode: 0o755 });
  for (const { source, target } of missing)
    await makeLink(inPackage(native, source), join(shim, basename(target)));
  // A library found in the shim looks for its own needs beside itself: all the others must be there too.
  const others = (await readdir(join(native, "lib"))).filter((name) => name.includes(".so"));
  for (const name of others) await makeLink(join(native, "lib", name), join(shim, name));
  return shim;
}

async function readLinks(native: string): Promise<readonly Link[]> {
  const text = await readFile(join(native, "pg-symlinks.json"), "utf8").catch(() => "[]");
  const links: unknown = JSON.parse(text);
  // Our own platform package wrote it: anything else is a broken install and shows when postgres starts.
  return Array.isArray(links) ? (links as Link[]) : [];
}

/** Paths in the list begin with "native/", the folder we already stand in. */
function inPackage(native: string, path: string): string {
  return join(native, path.replace(/^native\//, ""));
}

async function makeLink(to: string, at: string): Promise<void> {
  await symlink(to, at).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
    if (existsSync(at)) return; // another start made it
    await rm(at); // a link to a version that was uninstalled
    await symlink(to, at);
  });
}

function isReadOnly(error: unknown): boolean {
  return (
    error instanceof Error && "code" in error && ["EROFS", "EACCES", "EPERM"].includes(String(error.code))
  );
}
