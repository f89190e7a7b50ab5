// The shelf: jobs that were claimed ahead wait here until one that runs has ended. Nobody waits long: others could run them.
import { steadyMs } from "../clock.ts";
import type { RunningJob } from "./running.ts";

export interface Shelf {
  /** Puts one behind the others of its queue; `askedAt` is when it was claimed. */
  put(running: RunningJob, askedAt: number): void;
  /** The one of the queue that has waited longest. */
  take(queue: string): RunningJob | undefined;
  /** Takes all of them away. */
  clear(): RunningJob[];
}

/** What was claimed so long ago, and did not start, waits for jobs that have become slow. */
const WAIT_MS = 1000;
const LOOK_MS = 250;

interface Waiting {
  readonly running: RunningJob;
  readonly askedAt: number;
}

/** `onStale` is told when jobs wait too long: they should be given back. */
export function createShelf(onStale: () => void): Shelf {
  const rows = new Map<string, Waiting[]>();
  let size = 0;
  let looking: NodeJS.Timeout | undefined;

  function look(): void {
    const since = steadyMs() - WAIT_MS;
    if ([...rows.values()].some(([first]) => first && first.askedAt < since)) onStale();
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
    clear() {
      const all = [...rows.values()].flat();
      rows.clear();
      left(all.length);
      return all.map(({ running }) => running);
    },
  };
}
