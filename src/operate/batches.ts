// Many changes in small transactions: no lock is held long, and what is done stays done.
import { promoteKeys, type JobKey } from "../storage/due.ts";
import type { Pool } from "../storage/postgres.ts";
import { notifyWorkers } from "../storage/presence.ts";
import { afterCommit } from "./transaction.ts";

/** How many jobs or events one transaction changes at the most. */
export const BATCH_ROWS = 200;

/** How far a change of many has come. */
export interface Progress {
  readonly done: number;
  readonly total: number;
}

/** How a change of many is watched and stopped. */
export interface BatchOptions {
  readonly onProgress?: (progress: Progress) => void;
  /** Stops between two batches; what is done stays done. */
  readonly signal?: AbortSignal;
}

/** Lets the next job of each key run, after the commit that added it. */
export async function letRun(pool: Pool, keys: readonly JobKey[]): Promise<void> {
  if (keys.length === 0) return;
  await afterCommit(async () => {
    try {
      await promoteKeys(pool, keys);
      await notifyWorkers(pool, [...new Set(keys.map((key) => key.queue))]);
    } catch {
      // the commit stands: a worker finds keys that nobody holds by itself, a little later
    }
  });
}
