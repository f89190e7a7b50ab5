// What waits in the database, for the gauges: asked for now and then, and never waited for long.
import { inTime, steadyMs } from "../clock.ts";
import type { LedgerBacklog } from "../storage/effect-backlog.ts";
import type { ListedQueue } from "../storage/queues.ts";

/** What is known of a queue. */
export type QueueBacklog = Pick<
  ListedQueue,
  "name" | "paused" | "ready" | "scheduled" | "waiting" | "running" | "dead" | "oldest_ready_seconds"
>;

/** What waits: jobs in their queues, operations for a process or a person, effects for a call or a person. */
export interface Backlog {
  readonly queues: readonly QueueBacklog[];
  readonly operations: { readonly running: number; readonly stopped: number };
  readonly ledger: LedgerBacklog;
}

/** Answers younger than this are given again. */
const FRESH_MS = 5000;
/** Counting a long backlog takes time: it may take a twentieth of it. */
const PAUSE_PER_WORK = 20;
/** Whoever asks waits no longer than this, also when the database is away. */
const WAIT_MS = 250;
/** What is older than this is no answer any more. */
const OLD_MS = 60_000;

/** Makes a reader that asks the database at most every few seconds. It never rejects; undefined is what is not known. */
export function createBacklog(
  read: () => Promise<Backlog>,
  nowMs: () => number = steadyMs,
): () => Promise<Backlog | undefined> {
  let last: { readonly backlog: Backlog; readonly at: number } | undefined;
  let asking = false;
  let waited: Promise<void> | undefined;
  let nextAt = -Infinity;

  async function ask(): Promise<void> {
    asking = true;
    const startedAt = nowMs();
    try {
      last = { backlog: await read(), at: nowMs() };
    } catch {
      // the database is away: other metrics say so
    }
    nextAt = nowMs() + Math.max(FRESH_MS, PAUSE_PER_WORK * (nowMs() - startedAt));
    asking = false;
  }

  return async () => {
    // all who come at once wait together; a question that hangs does not hold up those who come later
    if (!asking && nowMs() >= nextAt) waited = inTime(ask(), WAIT_MS, () => {});
    await waited;
    return last && nowMs() - last.at < OLD_MS ? last.backlog : undefined;
  };
}
