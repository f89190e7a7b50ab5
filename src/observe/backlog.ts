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
): () => Promise<readonly QueueBacklog[]> {
  let last: { readonly queues: readonly QueueBacklog[]; readonly at: number } | undefined;
  let asking: Promise<void> | undefined;
  let nextAt = 0;

  async function ask(): Promise<void> {
    const startedAt = steadyMs();
    try {
      last = { queues: await read(), at: steadyMs() };
    } catch {
      // the database is away: other metrics say so
    }
    nextAt = steadyMs() + Math.max(FRESH_MS, PAUSE_PER_WORK * (steadyMs() - startedAt));
    asking = undefined;
  }

  return async () => {
    // only who asks first waits: one that hangs must not hold up the next
    if (!asking && steadyMs() >= nextAt) {
      asking = ask();
      await inTime(asking, WAIT_MS, () => {});
    }
    return last && steadyMs() - last.at < OLD_MS ? last.queues : [];
  };
}
