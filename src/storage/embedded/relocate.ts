// Where no unprivileged user can enter our folders and namespaces are forbidden: the cluster goes into a folder that
// can be entered, named by a pointer file in the data folder, and the programs beside it as hard links.
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import {
  chmod,
  copyFile,
  cp,
  link,
  mkdir,
  readdir,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { DataFolder } from "./folder.ts";
import { syncFolder } from "./folder.ts";
import type { Identity } from "./identity.ts";
import { linkLibraries } from "./libraries.ts";
import { environment, run } from "./program.ts";

// Not a temporary folder: systems empty those, and this one holds events.
const homes = "/var/lib/ukemi";

/** What decides where PostgreSQL runs. */
export interface Place {
  readonly folder: DataFolder;
  readonly binaries: string;
  /** Shim folder with library links, where one is needed. */
  readonly libraries: string | undefined;
}

/** Moves what the identity cannot reach. */
export async function relocate(place: Place, identity: Identity): Promise<Place> {
  const reaches = async (path: string) =>
    (await run(["sh", "-c", 'cd "$1"', "sh", path], identity, environment(undefined))).code === 0;
  let { folder, binaries, libraries } = place;
  if (!(await reaches(dirname(folder.cluster)))) {
    folder = await pointAway(folder);
    await followPointer(folder);
  }
  if (!(await reaches(binaries))) {
    const copy = join(dirname(folder.cluster), "postgres-native");
    await rm(copy, { recursive: true, force: true }); // of an older version, or half made
    await mirror(dirname(binaries), copy);
    binaries = join(copy, basename(binaries));
    libraries = await linkLibraries(binaries, folder.shim);
  }
  return { folder, binaries, libraries };
}

/** Names a new home in the pointer file before anything moves: a crash in between is then repaired by the next start. */
async function pointAway(folder: DataFolder): Promise<DataFolder> {
  const home = join(homes, randomBytes(8).toString("hex"));
  await mkdir(home, { recursive: true });
  for (const path of [homes, home]) await chmod(path, 0o711);
  await syncFolder(homes);
  await writeFile(`${folder.pointer}.new`, `${home}\n`);
  await rename(`${folder.pointer}.new`, folder.pointer);
  await syncFolder(folder.root);
  return { ...folder, cluster: join(home, "postgres") };
}

/** Brings a cluster that still lies in the data folder to where the pointer says it is. */
export async function followPointer(folder: DataFolder): Promise<void> {
  const before = join(folder.root, "postgres");
  if (before === folder.cluster || existsSync(folder.cluster) || !existsSync(before)) return;
  const arriving = `${folder.cluster}.arriving`;
  await rm(arriving, { recursive: true, force: true });
  const isSocket = (path: string) => basename(path).startsWith(".s.PGSQL.");
  await rename(before, folder.cluster).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EXDEV") throw error;
    await cp(before, arriving, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !isSocket(path),
    });
    await rename(arriving, folder.cluster);
    await rm(before, { recursive: true });
  });
  await syncFolder(dirname(folder.cluster));
}

/** The same tree by hard links; copies where links cannot be made. */
async function mirror(from: string, to: string): Promise<void> {
  await mkdir(to, { mode: 0o755 });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await mirror(source, target);
    else if (entry.isSymbolicLink()) await symlink(await readlink(source), target);
    else await link(source, target).catch(() => copyFile(source, target));
  }
}
