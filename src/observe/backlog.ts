// What waits in the queues, for the gauges: asked of the database now and then, and never waited for long.
import { inTime, steadyMs } from "../clock.ts";
import type { ListedQueue } from "../storage/queues.ts";

/** What is known of a queue. */
export type QueueBacklog = Pick<
  ListedQueue,
  "name" | "paused" | "ready" | "scheduled" | "waiting" | "running" | "dead" | "oldest_ready_seconds"
>;

/** Answers younger than this are given again. */
const FRESH_MS = 5000;
/** Counting a long backlog takes time: it may take a twentieth of it. */
const PAUSE_PER_WORK = 20;
/** Whoever asks waits no longer than this, also when the database is away. */
const WAIT_MS = 250;
/** What is older than this is no answer any more. */
const OLD_MS = 60_000;

/** Makes a reader that asks the database at most every few seconds. It never rejects: what is not known is left out. */
export function createBacklog(
  read: () => Promise<readonly QueueBacklog[]>,
  nowMs: () => number = steadyMs,
): () => Promise<readonly QueueBacklog[]> {
  let last: { readonly queues: readonly QueueBacklog[]; readonly at: number } | undefined;
  let asking = false;
  let waited: Promise<void> | undefined;
  let nextAt = -Infinity;

  async function ask(): Promise<void> {
    asking = true;
    const startedAt = nowMs();
    try {
      last = { queues: await read(), at: nowMs() };
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
    return last && nowMs() - last.at < OLD_MS ? last.queues : [];
  };
}
