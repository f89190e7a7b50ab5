// Time: the process's steady clock, and the database's time as seen from here.
import { performance } from "node:perf_hooks";

/** Milliseconds that never jump: for deadlines and durations, never for dates. */
export function steadyMs(): number {
  return performance.now();
}

/** The database's time, kept between samples by the steady clock, so that a jump of the process clock is not seen. */
export interface DatabaseClock {
  /** Milliseconds since 1970 on the database's clock; the process clock until the first sample. */
  now(): number;
  /** Takes a reading of the database's clock that was made between `sentAt` and now (both steady). */
  sample(databaseMs: number, sentAt: number): void;
  /** How far the process clock is ahead of the database's, in milliseconds; undefined before the first sample. */
  skewMs(): number | undefined;
}

/** Starts with no sample: until the database has been heard, the process clock is the best guess. */
export function createDatabaseClock(): DatabaseClock {
  let reading: { databaseMs: number; steadyAt: number } | undefined;
  const now = () => (reading ? reading.databaseMs + (steadyMs() - reading.steadyAt) : Date.now());
  return {
    now,
    sample(databaseMs, sentAt) {
      const heardAt = steadyMs();
      reading = { databaseMs, steadyAt: sentAt + (heardAt - sentAt) / 2 };
    },
    skewMs: () => (reading ? Date.now() - now() : undefined),
  };
}

/** Waits; ends early, without an error, when the signal fires. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** Waits for the work, but no longer than so many milliseconds; `late` then decides what comes of it. */
export async function inTime<T>(work: Promise<T>, ms: number, late: () => T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const time = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms))).then(late);
  try {
    return await Promise.race([work, time]);
  } finally {
    clearTimeout(timer);
  }
}
