// One process at a time starts the server of a folder. The lock is a file that names its holder, so that a holder
// that was killed does not keep it. It spares work and confusion; what must never happen twice is guarded by
// atomic renames (the cluster) and by PostgreSQL's own postmaster.pid.
import { randomUUID } from "node:crypto";
import { open, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { sleep, steadyMs } from "../../clock.ts";
import { UkemiError } from "../../errors.ts";
import { ifMissing } from "./folder.ts";
import { startedAt } from "./processes.ts";

const pollMs = 20;
const beatMs = 1_000;
/** A wait longer than this is worth a line in the log. */
const noticeMs = 1_000;
/** A holder whose pid means nothing here (another container) is taken for dead after this silence. */
const silenceMs = 6_000;

export interface LockOptions {
  readonly path: string;
  /** How long to wait for another holder. */
  readonly waitMs: number;
  /** Called once, with the holder's name, when the wait takes longer than a moment. */
  readonly onWait: (holder: string) => void;
}

/** Runs `work` while holding the lock. */
export async function withLock<T>({ path, waitMs, onWait }: LockOptions, work: () => Promise<T>): Promise<T> {
  const mine = `${process.pid} ${await startedAt(process.pid)} ${randomUUID()} ${hostname()}`;
  const begun = steadyMs();
  let told = false;
  while (!(await take(path, mine))) {
    const waitedMs = steadyMs() - begun;
    if (waitedMs > waitMs) throw await heldTooLong(path);
    if (waitedMs > noticeMs && !told) {
      told = true;
      onWait(await holderName(path));
    }
    await sleep(pollMs);
  }
  const beat = setInterval(() => void touch(path), beatMs);
  beat.unref();
  try {
    return await work();
  } finally {
    clearInterval(beat);
    if ((await holder(path)) === mine) await rm(path, { force: true });
  }
}

async function take(path: string, mine: string): Promise<boolean> {
  if (await create(path, mine)) return true;
  if (await isHeld(path)) return false;
  // Two may find the same dead holder. Both replace it, the later one stays, and after a moment both read who it is.
  const replacement = `${path}.${randomUUID()}`;
  await writeFile(replacement, mine, { mode: 0o600 });
  await rename(replacement, path);
  await sleep(2 * pollMs);
  return (await holder(path)) === mine;
}

async function create(path: string, mine: string): Promise<boolean> {
  const handle = await open(path, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EEXIST") return undefined;
    throw error;
  });
  if (!handle) return false;
  try {
    await handle.writeFile(mine);
    return true;
  } catch (error) {
    await rm(path, { force: true }); // a full disk: leave no nameless lock
    throw error;
  } finally {
    await handle.close();
  }
}

async function isHeld(path: string): Promise<boolean> {
  const text = await holder(path);
  const info = await stat(path).catch(ifMissing(undefined));
  if (text === undefined || info === undefined) return true; // just let go: try again
  const fresh = Math.abs(Date.now() - info.mtimeMs) < silenceMs;
  const [pid, started, , host] = text.split(" ");
  if (host === undefined || host !== hostname()) return fresh; // half written, or of another container
  return (await startedAt(Number(pid))) === started;
}

function holder(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(ifMissing(undefined));
}

async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now).catch(() => undefined);
}

async function holderName(path: string): Promise<string> {
  const [pid = "?", , , host = "this host"] = ((await holder(path)) ?? "").split(" ");
  return `process ${pid} on ${host}`;
}

async function heldTooLong(path: string): Promise<UkemiError> {
  return new UkemiError(
    "data_folder_in_use",
    `The ${await holderName(path)} has been starting PostgreSQL on this folder for too long (${path}). ` +
      "Stop that process, or choose another data folder.",
  );
}
