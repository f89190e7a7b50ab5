// Slots: how many jobs of each queue may run in this process at once, and when one runs alone.

import { steadyMs } from "../clock.ts";

export interface Slots {
  /** How many more jobs of the queue may start now. */
  free(queue: string): number;
  /** True where at least half of the queue's slots are free. */
  halfFree(queue: string): boolean;
  /** How many jobs one claim may ask for: with all at once, those would end together, and the next claim wait for the last. */
  claimable(queue: string): number;
  take(queue: string, count: number): void;
  /** Gives back slots in which nothing was started. */
  release(queue: string, count: number): void;
  /** A job has ended: its slot is free. */
  end(queue: string): void;
  /** No job starts until `reopen`. */
  close(): void;
  /** How long ago the last job ended, in milliseconds; 0 while one runs. */
  quietMs(): number;
  reopen(): void;
  /** Resolves when nothing runs. */
  idle(): Promise<void>;
}

/** So few are asked for at once. */
const SMALL = 50;

/** `onFree` is told whenever a slot of a queue has become free. */
export function createSlots(
  concurrency: ReadonlyMap<string, number>,
  onFree: (queue: string) => void,
): Slots {
  const used = new Map<string, number>();
  let running = 0;
  let endedAt = -Infinity;
  let closed = false;
  let waiting: (() => void)[] = [];

  const idle = () =>
    running === 0 ? Promise.resolve() : new Promise<void>((resolve) => waiting.push(resolve));

  function wakeWaiting(): void {
    const resolves = waiting;
    waiting = [];
    for (const resolve of resolves) resolve();
  }

  function release(queue: string, count: number): void {
    used.set(queue, (used.get(queue) ?? 0) - count);
    running -= count;
    if (running === 0) wakeWaiting();
    onFree(queue);
  }

  const free = (queue: string) => (closed ? 0 : (concurrency.get(queue) ?? 0) - (used.get(queue) ?? 0));

  return {
    free,
    claimable: (queue) =>
      Math.min(free(queue), Math.max(SMALL, Math.ceil((concurrency.get(queue) ?? 0) / 2))),
    halfFree: (queue) => 2 * free(queue) >= (concurrency.get(queue) ?? 0),
    take(queue, count) {
      used.set(queue, (used.get(queue) ?? 0) + count);
      running += count;
    },
    release,
    end(queue) {
      endedAt = steadyMs();
      release(queue, 1);
    },
    close: () => void (closed = true),
    quietMs: () => (running > 0 ? 0 : steadyMs() - endedAt),
    reopen() {
      closed = false;
      for (const queue of concurrency.keys()) onFree(queue);
    },
    idle,
  };
}
