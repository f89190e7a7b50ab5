// An offer of free slots to the inbox: jobs that are stored now may be inserted as claimed by this worker.
import { steadyMs } from "../clock.ts";
import type { Job } from "../storage/claim.ts";
import type { SlotOffer } from "../storage/events.ts";
import type { Floor } from "./floor.ts";

/** Slots that are held free until the commit is known. Exactly one of the two ends must be called. */
export interface Offer extends SlotOffer {
  /** These were inserted as claimed: they run now. */
  accept(jobs: readonly Job[]): void;
  /** The commit is unknown: what may have been claimed under the token is given back. */
  withdraw(): void;
}

/** Holds the given slots; undefined where there are none. */
export function makeOffer(floor: Floor, free: ReadonlyMap<string, number>): Offer | undefined {
  if (free.size === 0) return undefined;
  const { worker, leaseMs, slots, running } = floor;
  const token = running.expect();
  const askedAt = steadyMs();
  for (const [queue, count] of free) slots.take(queue, count);

  function settle(jobs: readonly Job[]): void {
    for (const [queue, count] of free) {
      const started = jobs.filter((job) => job.queue === queue).length;
      if (count > started) slots.release(queue, count - started);
    }
    for (const job of jobs) floor.run(job, askedAt);
    running.expectNoMore(token);
  }

  function withdraw(): void {
    settle([]);
    floor.giveBackClaim(token);
  }

  return {
    worker,
    token,
    leaseMs,
    handlers: [...free.keys()].flatMap(floor.handlersOf),
    slots: free,
    // the shift may have ended while the commit was under way: nobody may run them under its name any more
    accept: (jobs) => (floor.over.aborted ? withdraw() : settle(jobs)),
    withdraw,
  };
}
