// Slots: how many jobs of each queue may run in this process at once, how many may be held ahead, and when one runs alone.

import { steadyMs } from "../clock.ts";

export interface Slots {
  /** How many more jobs of the queue may start now. */
  free(queue: string): number;
  /** True where at least half of the jobs that may be held are not. */
  halfFree(queue: string): boolean;
  /** How many jobs one claim may ask for: with all at once, those would end together, and the next claim wait for the last. */
  claimable(queue: string): number;
  /** Holds places for jobs that are being asked for. */
  take(queue: string, count: number): void;
  /** Takes note of what a job of the queue holds in memory. */
  weigh(queue: string, bytesEach: number): void;
  /** Gives back places of which nothing was started. */
  release(queue: string, count: number): void;
  /** True where fewer run than may do so at once. */
  mayStart(queue: string): boolean;
  /** A job that is held starts. */
  start(queue: string): void;
  /** A job has ended: its slot is free. */
  end(queue: string): void;
  /** Nothing is asked for until `reopen`, and what was asked for before must not start. */
  close(): void;
  isClosed(): boolean;
  /** How long ago the last job ended, in milliseconds; 0 while one is held. */
  quietMs(): number;
  reopen(): void;
  /** Resolves when nothing is held. */
  idle(): Promise<void>;
}

/** So few are asked for at once. */
const SMALL = 50;

/**
 * A claim costs much, and one more job in it little. So jobs are claimed ahead: as many as ended within the last so many
 * milliseconds, for those will have started as long from now; never more than so many, nor so many bytes, for they wait in
 * memory.
 */
const AHEAD = { ms: 100, most: 500, bytes: 16 * 1024 * 1024 };

/** One queue: what is held runs, waits to run, or is being asked for. */
interface Count {
  held: number;
  running: number;
  /** Ends in the present stretch of time, and in the one before. */
  ends: number;
  endsBefore: number;
  stretch: number;
  /** What a job of the last claim held in memory. */
  bytesEach: number;
}

/** `onFree` is told whenever a place of a queue has become free. */
export function createSlots(
  concurrency: ReadonlyMap<string, number>,
  onFree: (queue: string) => void,
): Slots {
  const counts = new Map<string, Count>();
  let heldInAll = 0;
  let endedAt = -Infinity;
  let closed = false;
  let waiting: (() => void)[] = [];

  const idle = () =>
    heldInAll === 0 ? Promise.resolve() : new Promise<void>((resolve) => waiting.push(resolve));

  function wakeWaiting(): void {
    const resolves = waiting;
    waiting = [];
    for (const resolve of resolves) resolve();
  }

  function countOf(queue: string): Count {
    const known = counts.get(queue);
    if (known) return known;
    const count = { held: 0, running: 0, ends: 0, endsBefore: 0, stretch: -1, bytesEach: 1 };
    counts.set(queue, count);
    return count;
  }

  const limitOf = (queue: string) => concurrency.get(queue) ?? 0;

  /** How many may be held. */
  function roomOf(queue: string): number {
    const count = countOf(queue);
    turn(count, steadyMs());
    return limitOf(queue) + Math.min(count.endsBefore, AHEAD.most, Math.floor(AHEAD.bytes / count.bytesEach));
  }

  const openIn = (queue: string, room: number) => (closed ? 0 : Math.max(0, room - countOf(queue).held));

  function hold(queue: string, places: number): void {
    countOf(queue).held += places;
    heldInAll += places;
  }

  function release(queue: string, count: number): void {
    hold(queue, -count);
    if (heldInAll === 0) wakeWaiting();
    onFree(queue);
  }

  return {
    free: (queue) => openIn(queue, limitOf(queue)),
    claimable(queue) {
      const room = roomOf(queue);
      return Math.min(openIn(queue, room), Math.max(SMALL, Math.ceil(room / 2)));
    },
    halfFree(queue) {
      const room = roomOf(queue);
      return 2 * openIn(queue, room) >= room;
    },
    take: hold,
    weigh: (queue, bytesEach) => void (countOf(queue).bytesEach = Math.max(1, bytesEach)),
    release,
    mayStart: (queue) => countOf(queue).running < limitOf(queue),
    start: (queue) => void (countOf(queue).running += 1),
    end(queue) {
      endedAt = steadyMs();
      const count = countOf(queue);
      turn(count, endedAt);
      count.ends += 1;
      count.running -= 1;
      release(queue, 1);
    },
    close: () => void (closed = true),
    isClosed: () => closed,
    quietMs: () => (heldInAll > 0 ? 0 : steadyMs() - endedAt),
    reopen() {
      closed = false;
      for (const queue of concurrency.keys()) onFree(queue);
    },
    idle,
  };
}

/** Goes on to the stretch of time in which we are. */
function turn(count: Count, now: number): void {
  const stretch = Math.floor(now / AHEAD.ms);
  if (stretch === count.stretch) return;
  count.endsBefore = stretch === count.stretch + 1 ? count.ends : 0;
  count.ends = 0;
  count.stretch = stretch;
}
