// What goes wrong with the spool's folder, in words that say what to do about it.
import { UkemiError } from "../../errors.ts";

const AGAIN = "push the file again: what was sent already is recognised by the meter.";

const REMEDIES: Readonly<Record<string, string>> = {
  ENOENT: `It was removed while the exporter ran, with what had been saved in it. Make sure that nobody does, and ${AGAIN}`,
  EIO: `The disk does not keep what it is given: look at the system's log. Mend it or choose another with --data, and ${AGAIN}`,
  EROFS: `The disk is mounted read-only: mount it for writing or choose another with --data, and ${AGAIN}`,
};

/** Does something with the folder; throws what a person can do about it where that fails. */
export async function orTell<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof UkemiError ? error : told(folder, error);
  }
}

function told(folder: string, cause: unknown): UkemiError {
  const { code = "unknown error" } = cause as NodeJS.ErrnoException;
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new UkemiError("disk_full", `The spool ${folder} cannot be written: the disk is full.`, {
      cause,
      remedy: `Free space there and ${AGAIN}`,
    });
  }
  const remedy = REMEDIES[code];
  return new UkemiError("spool_failed", `The spool ${folder} cannot be used (${code}).`, {
    cause,
    ...(remedy !== undefined && { remedy }),
  });
}
