// The data folder: what lies in it, and to whom it belongs.
import { chmod, lchown, lstat, mkdir, open, readFile, readdir, realpath } from "node:fs/promises";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { UkemiError } from "../../errors.ts";

/** Paths in a data folder. */
export interface DataFolder {
  readonly root: string;
  /** The PostgreSQL cluster; elsewhere where a pointer file says so. */
  readonly cluster: string;
  /** Names the folder that holds the cluster when no unprivileged user can enter this one. */
  readonly pointer: string;
  /** Held while a process starts the server. */
  readonly lock: string;
  /** Which process the running server will end with. */
  readonly owner: string;
  /** What PostgreSQL says. */
  readonly log: string;
  /** Library links, where node_modules is read-only. */
  readonly shim: string;
}

/** Makes the folder where it is missing and may be made, and follows the pointer to the cluster. */
export async function openDataFolder(data: string, mayCreate: boolean): Promise<DataFolder> {
  if (mayCreate && !existsSync(data)) {
    const first = await makeFolder(data);
    // The server's own user must pass through; the cluster and the log inside are closed to others.
    if (first !== undefined && process.getuid?.() === 0) await chmod(data, 0o711);
    if (first !== undefined) await syncFolder(dirname(first));
  }
  const root = await realpath(data);
  const pointer = join(root, "postgres.location");
  return {
    root,
    cluster: join((await readPointer(pointer)) ?? root, "postgres"),
    pointer,
    lock: join(root, "postgres.lock"),
    owner: join(root, "postgres.owner"),
    log: join(root, "postgres.log"),
    shim: join(root, "postgres-lib"),
  };
}

/** Makes the folder and those above it; returns the first it made. (Node's recursive mkdir spins for ever below /proc.) */
export async function makeFolder(path: string): Promise<string | undefined> {
  if (existsSync(path)) return undefined;
  const above = await makeFolder(dirname(path));
  await mkdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  return above ?? path;
}

async function readPointer(pointer: string): Promise<string | undefined> {
  const text = await readFile(pointer, "utf8").catch(ifMissing(undefined));
  const home = text?.replace(/\n$/, "");
  if (home === undefined || existsSync(home)) return home;
  // Making a new, empty cluster here would hide that the data are gone.
  throw new UkemiError(
    "embedded_failed",
    `${pointer} says that the data are in ${home}, which does not exist. ` +
      "Restore that folder, or delete the pointer file to begin with an empty database.",
  );
}

/** Gives the cluster to the owner. The folder itself comes last, so that an interrupted change is done again. */
export async function giveTo(owner: { uid: number; gid: number }, path: string): Promise<void> {
  const { uid } = await lstat(path);
  if (uid === owner.uid) return;
  if (process.getuid?.() !== 0) {
    throw new UkemiError(
      "embedded_failed",
      `${path} belongs to the user with uid ${uid}, and this process runs with uid ${process.getuid?.()}. ` +
        "Run it as that user, or choose another data folder.",
    );
  }
  for (const entry of await readdir(path, { recursive: true }))
    await lchown(join(path, entry), owner.uid, owner.gid);
  await lchown(path, owner.uid, owner.gid);
}

/** Makes a rename or a new entry in the folder survive a power cut. */
export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, "r");
  await handle.sync().catch(() => undefined); // some file systems refuse to sync a folder
  await handle.close();
}

/** For `catch`: a missing file becomes `value`, any other error stays one. */
export function ifMissing<T>(value: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === "ENOENT") return value;
    throw error;
  };
}
