// PostgreSQL's own log: kept in the data folder, bounded, and quoted when a start fails.
import { open, readFile, rename, stat } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { ifMissing } from "./folder.ts";

const bytesMax = 10 * 1024 * 1024;
const quotedLines = 12;

/** The log, open for the server to append to; `size` is where this start's lines begin. */
export interface Journal {
  readonly handle: FileHandle;
  readonly size: number;
}

/** Opens the log; one that has grown over 10 MB becomes `postgres.log.1` first. */
export async function openJournal(path: string): Promise<Journal> {
  const size = (await stat(path).catch(ifMissing(undefined)))?.size ?? 0;
  if (size > bytesMax) await rename(path, `${path}.1`);
  const handle = await open(path, "a", 0o600);
  return { handle, size: size > bytesMax ? 0 : size };
}

/** The last lines written since `from`. */
export async function quote(path: string, from: number): Promise<string> {
  const text = await readFile(path).catch(() => Buffer.alloc(0));
  return text.subarray(from).toString("utf8").trim().split("\n").slice(-quotedLines).join("\n");
}
