// Turns what programs and the file system say into errors of the catalogue.
import { statfs } from "node:fs/promises";
import { UkemiError } from "../../errors.ts";

const fullTexts = /No space left on device|Disk quota exceeded|ENOSPC|EDQUOT/;
/** PostgreSQL cannot even say so in its log when less than this is free. */
const freeBytesMin = 1024 * 1024;

/** The error for a program that failed: a full disk is told apart from all else. */
export async function programFault(what: string, said: string, data: string): Promise<UkemiError> {
  if (fullTexts.test(said) || (await isFull(data))) return diskFull(data);
  return new UkemiError("embedded_failed", `${what}${said ? `:\n${said}` : "; it gave no reason."}`);
}

/** Any error on the way to a running server, as one of ours. */
export function asUkemiError(error: unknown, data: string): UkemiError {
  if (error instanceof UkemiError) return error;
  const text = error instanceof Error ? error.message : String(error);
  if (fullTexts.test(text)) return diskFull(data, error);
  return new UkemiError("embedded_failed", `The embedded PostgreSQL in ${data} did not start: ${text}`, {
    cause: error,
  });
}

function diskFull(data: string, cause?: unknown): UkemiError {
  return new UkemiError(
    "disk_full",
    `The disk that holds ${data} is full. Free some space (a new data folder takes about 60 MB), then start again.`,
    { cause },
  );
}

async function isFull(data: string): Promise<boolean> {
  const disk = await statfs(data).catch(() => undefined);
  return disk !== undefined && disk.bavail * disk.bsize < freeBytesMin;
}
