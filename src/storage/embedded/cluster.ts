// Makes the cluster at the first start, and refuses one of another major version later.
import { randomBytes } from "node:crypto";
import { chmod, lchown, mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { UkemiError } from "../../errors.ts";
import { programFault } from "./faults.ts";
import { giveTo, ifMissing, syncFolder } from "./folder.ts";
import type { DataFolder } from "./folder.ts";
import type { Installation } from "./identity.ts";
import { run } from "./program.ts";

/** The one database user. Not named as our schema: `"$user"` is on the search path, and an application's tables would land there. */
export const user = "app";

/** Holds the user's password; inside the cluster, so that both appear by one rename. */
const passwordFile = "ukemi.password";

/** Refuses a cluster that another major version made. */
export async function checkVersion(cluster: string, major: number): Promise<void> {
  const made = (await readFile(join(cluster, "PG_VERSION"), "utf8").catch(ifMissing(undefined)))?.trim();
  if (made === undefined || made === String(major)) return;
  throw new UkemiError(
    "data_folder_mismatch",
    `${cluster} was made by PostgreSQL ${made}, and this is PostgreSQL ${major}. ` +
      `Start it with the ukemi version that brought PostgreSQL ${made}, dump and restore, or choose another data folder.`,
  );
}

/** Runs initdb where there is no cluster yet, aside, so that a crash in the middle leaves nothing half made. */
export async function ensureCluster(installation: Installation, folder: DataFolder): Promise<void> {
  const { cluster, identity } = installation;
  await removeHalfMade(cluster);
  if (await isMade(cluster)) return await giveTo(identity.owner, cluster);
  const aside = `${cluster}.new-${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    await mkdir(aside, { mode: 0o700 });
    await init(installation, aside, folder);
    await rename(join(aside, "cluster"), cluster).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error; // another process was quicker: use its
    });
    await syncFolder(dirname(cluster));
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
}

/** The password of the cluster's user. */
export async function readPassword(cluster: string): Promise<string> {
  return (await readFile(join(cluster, passwordFile), "utf8")).trim();
}

async function init(installation: Installation, aside: string, folder: DataFolder): Promise<void> {
  const { identity, binaries, env, major } = installation;
  const password = join(aside, "password");
  await writeFile(password, `${randomBytes(24).toString("hex")}\n`, { mode: 0o600 });
  await chmod(password, 0o600);
  if (identity.drop)
    for (const path of [aside, password]) await lchown(path, identity.owner.uid, identity.owner.gid);
  // Byte order for sorting, whatever LANG says: the same everywhere, never SQL_ASCII. From 17 on upper() and
  // lower() know all of Unicode without the system's locales.
  const locale =
    major >= 17 ? ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"] : ["--no-locale"];
  const { code, output, errors } = await run(
    [
      join(binaries, "initdb"),
      `--pgdata=${join(aside, "cluster")}`,
      `--username=${user}`,
      `--pwfile=${password}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      ...locale,
      "--data-checksums",
      "--no-instructions",
    ],
    identity,
    env,
  );
  if (code !== 0)
    throw await programFault("initdb failed", `${output}${errors}`.slice(-2_000).trim(), folder.root);
  await rename(password, join(aside, "cluster", passwordFile));
}

/** An empty folder in its place is no cluster: a rename may replace it. */
async function isMade(cluster: string): Promise<boolean> {
  return (await readdir(cluster).catch(ifMissing([]))).length > 0;
}

/** What an interrupted first start left. Only the holder of the lock comes here, so none is in use. */
async function removeHalfMade(cluster: string): Promise<void> {
  const prefix = `${basename(cluster)}.new-`;
  for (const entry of await readdir(dirname(cluster))) {
    if (!entry.startsWith(prefix)) continue;
    // An initdb whose parent was killed may still be writing there for a moment.
    await rm(join(dirname(cluster), entry), { recursive: true, force: true, maxRetries: 5 });
  }
}
