// Slots: how many jobs of each queue may run in this process at once, and when one runs alone.

export interface Slots {
  /** How many more jobs of the queue may start now. */
  free(queue: string): number;
  take(queue: string, count: number): void;
  release(queue: string, count: number): void;
  running(): number;
  /** No job starts until `reopen`; resolves when none is left. */
  close(): Promise<void>;
  reopen(): void;
  /** Resolves when nothing runs. */
  idle(): Promise<void>;
}

/** `onFree` is told whenever a slot of a queue has become free. */
export function createSlots(
  concurrency: ReadonlyMap<string, number>,
  onFree: (queue: string) => void,
): Slots {
  const used = new Map<string, number>();
  let running = 0;
  let closed = false;
  let waiting: (() => void)[] = [];

  const idle = () =>
    running === 0 ? Promise.resolve() : new Promise<void>((resolve) => waiting.push(resolve));

  function wakeWaiting(): void {
    const resolves = waiting;
    waiting = [];
    for (const resolve of resolves) resolve();
  }

  return {
    free: (queue) => (closed ? 0 : (concurrency.get(queue) ?? 0) - (used.get(queue) ?? 0)),
    take(queue, count) {
      used.set(queue, (used.get(queue) ?? 0) + count);
      running += count;
    },
    release(queue, count) {
      used.set(queue, (used.get(queue) ?? 0) - count);
      running -= count;
      if (running === 0) wakeWaiting();
      onFree(queue);
    },
    running: () => running,
    close() {
      closed = true;
      return idle();
    },
    reopen() {
      closed = false;
      for (const queue of concurrency.keys()) onFree(queue);
    },
    idle,
  };
}
