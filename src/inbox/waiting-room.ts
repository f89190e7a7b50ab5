// Where verified events wait for a commit: bounded, and nobody waits past the deadline.
import { steadyMs } from "../clock.ts";
import { createCrowd, type Place } from "../crowd.ts";
import { UkemiError } from "../errors.ts";
import type { NewEvent, StoredEvent } from "../storage/events.ts";

/** An event that waits. Answered once; later answers are ignored. */
export interface Waiting {
  readonly event: NewEvent;
  settled(): boolean;
  resolve(stored: StoredEvent): void;
  reject(error: unknown): void;
}

export interface WaitingRoomLimits {
  readonly deadlineMs: number;
  readonly batchRowsMax: number;
  readonly batchBytesMax: number;
  readonly waitingRowsMax: number;
}

export interface WaitingRoom {
  /** Waits for a commit; resolves or rejects by the deadline. */
  enter(event: NewEvent): Promise<StoredEvent>;
  /** The next batch, oldest first; waits for one. Empty only when the room is closed and nobody waits. */
  take(): Promise<Waiting[]>;
  /** Returns to the head of the queue those that were not answered yet. */
  putBack(batch: readonly Waiting[]): void;
  /** Lets one wait apart from the others: it comes again after a pause, in a batch of its own. */
  putAside(waiting: Waiting): void;
  size(): number;
  close(): void;
}

interface Seat extends Waiting {
  readonly enteredAt: number;
}

const SWEEP_MS = 100;

/** How long one that was put aside pauses before its next turn. */
const ASIDE_MS = 50;

/**
 * While others are being committed, newcomers wait for company: a commit of a few costs nearly as much as one of many. Where
 * only a few are being committed, as many are company enough. Where there are more, two commits at once would fight for the
 * processors with those who are still being read, so they take turns, until there are so many; and nobody waits for company
 * longer than this, for the disk may be slow, or the commit under way hang.
 */
const COMPANY = { few: 16, rows: 64, ms: 2 };

/** Makes an empty room. */
export function createWaitingRoom(limits: WaitingRoomLimits): WaitingRoom {
  let queue: Seat[] = [];
  let pausing = 0; // of those put aside
  let aside: Seat[] = []; // those whose pause is over
  const seated = createCrowd<Seat>(); // waiting or in flight: everyone who has not been answered
  let closed = false;
  let wake: (() => void)[] = [];
  let sweeper: NodeJS.Timeout | undefined;
  let lonely: NodeJS.Timeout | undefined;

  /** Whether it is time for another commit. */
  function isTime(): boolean {
    const away = seated.size() - queue.length - pausing; // being committed
    if (closed || aside.length > 0 || queue.length >= (away < COMPANY.few ? away : COMPANY.rows)) return true;
    const first = queue[0];
    return first === undefined || steadyMs() - first.enteredAt >= COMPANY.ms;
  }

  /** Wakes the lanes, now or when it is time. */
  function announce(): void {
    if (isTime()) wakeLanes();
    else announceLater();
  }

  function announceLater(): void {
    lonely ??= setTimeout(() => {
      lonely = undefined;
      announce();
    }, COMPANY.ms);
  }

  /** Who fell asleep last comes first: where one lane is enough it is the same one, whose backend has everything at hand. */
  function wakeLanes(): void {
    const sleeping = wake.toReversed();
    wake = [];
    for (const resolve of sleeping) resolve();
  }

  // one timer for the whole room: a timer for each request would cost more than the request
  function sweep(): void {
    const late = steadyMs() - limits.deadlineMs;
    // all wait equally long
    for (let seat = seated.first(); seat && seat.enteredAt <= late; seat = seated.first()) {
      seat.reject(new UkemiError("store_unavailable", "The commit took longer than the deadline."));
    }
    if (seated.size() === 0) {
      clearInterval(sweeper);
      sweeper = undefined;
    }
  }

  function enter(event: NewEvent): Promise<StoredEvent> {
    if (closed) return Promise.reject(new UkemiError("stopping"));
    if (seated.size() >= limits.waitingRowsMax) return Promise.reject(new UkemiError("overloaded"));
    return new Promise((resolve, reject) => {
      const seat: Seat = {
        event,
        enteredAt: steadyMs(),
        settled: () => !place.isHere,
        resolve: (stored) => leave(place) && resolve(stored),
        reject: (error) => leave(place) && reject(error),
      };
      const place = seated.enter(seat);
      queue.push(seat);
      sweeper ??= setInterval(sweep, SWEEP_MS);
      announce();
    });
  }

  /** True the first time: everyone is answered once. */
  function leave(place: Place<Seat>): boolean {
    const wasSeated = seated.leave(place);
    if (closed && seated.size() === 0) wakeLanes(); // the last one: lanes that wait for work may end
    return wasSeated;
  }

  /** As many from the head of the queue as one commit takes; those whose time ran out are left behind. */
  function nextBatch(): Seat[] {
    const batch: Seat[] = [];
    let batchBytes = 0;
    let taken = 0;
    for (const seat of queue) {
      if (batch.length === limits.batchRowsMax) break;
      if (batch.length > 0 && batchBytes + seat.event.body.length > limits.batchBytesMax) break;
      taken += 1;
      if (seat.settled()) continue;
      batch.push(seat);
      batchBytes += seat.event.body.length;
    }
    queue = queue.slice(taken);
    return batch;
  }

  /** Those put aside take turns with the queue, so that neither starves the other. */
  let asideIsNext = false;
  function nextTurn(): Seat[] {
    aside = aside.filter((seat) => !seat.settled());
    asideIsNext = !asideIsNext && aside.length > 0;
    if (asideIsNext) return [aside.shift()!];
    const batch = nextBatch();
    return batch.length > 0 ? batch : aside.splice(0, 1);
  }

  async function take(): Promise<Waiting[]> {
    for (;;) {
      const batch = isTime() ? nextTurn() : [];
      if (batch.length > 0 || (closed && seated.size() === 0)) return batch;
      if (queue.length > 0) announceLater();
      await new Promise<void>((resolve) => wake.push(resolve));
    }
  }

  return {
    enter,
    take,
    putBack(batch) {
      queue = [...(batch as Seat[]).filter((seat) => !seat.settled()), ...queue];
      wakeLanes();
    },
    putAside(waiting) {
      const seat = waiting as Seat;
      pausing += 1;
      setTimeout(() => {
        pausing -= 1;
        aside.push(seat);
        wakeLanes();
      }, ASIDE_MS);
    },
    size: seated.size,
    close() {
      closed = true;
      wakeLanes();
    },
  };
}
