// The shelf: jobs that were claimed ahead wait here until one that runs has ended. Nobody waits long: others could run them.
import { steadyMs } from "../clock.ts";
import type { RunningJob } from "./running.ts";

export interface Shelf {
  /** Puts one behind the others of its queue; `askedAt` is when it was claimed. */
  put(running: RunningJob, askedAt: number): void;
  /** The one of the queue that has waited longest. */
  take(queue: string): RunningJob | undefined;
  /** Takes all of them away: those of one queue, or of every queue. */
  clear(queue?: string): RunningJob[];
}

/** What was claimed so long ago, and did not start, waits for jobs that have become slow. */
const WAIT_MS = 1000;
const LOOK_MS = 250;

interface Waiting {
  readonly running: RunningJob;
  readonly askedAt: number;
}

/** `onStale` is told when jobs of a queue wait too long: they should be given back. */
export function createShelf(onStale: (queue: string) => void): Shelf {
  const rows = new Map<string, Waiting[]>();
  let size = 0;
  let looking: NodeJS.Timeout | undefined;

  function look(): void {
    const since = steadyMs() - WAIT_MS;
    for (const [queue, [first]] of rows) if (first && first.askedAt < since) onStale(queue);
  }

  function left(count: number): void {
    size -= count;
    if (size > 0) return;
    clearInterval(looking);
    looking = undefined;
  }

  return {
    put(running, askedAt) {
      const { queue } = running.job;
      const row = rows.get(queue) ?? [];
      rows.set(queue, row);
      row.push({ running, askedAt });
      size += 1;
      looking ??= setInterval(look, LOOK_MS);
    },
    take(queue) {
      const first = rows.get(queue)?.shift();
      if (first) left(1);
      return first?.running;
    },
    clear(queue) {
      const queues = queue === undefined ? [...rows.keys()] : [queue];
      const all = queues.flatMap((one) => rows.get(one) ?? []);
      for (const one of queues) rows.delete(one);
      left(all.length);
      return all.map(({ running }) => running);
    },
  };
}
