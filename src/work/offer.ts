// An offer of free slots to the inbox: jobs that are stored now may be inserted as claimed by this worker.
import { steadyMs } from "../clock.ts";
import type { Job } from "../storage/claim.ts";
import type { NewEvent, SlotOffer } from "../storage/events.ts";
import type { Floor } from "./floor.ts";
import { matches, type Handler } from "./handler.ts";

/** Slots that are held free until the commit is known. Exactly one of the two ends must be called. */
export interface Offer extends SlotOffer {
  /** These were inserted as claimed: they run now. */
  accept(jobs: readonly Job[]): void;
  /** The commit is unknown: what may have been claimed under the token is given back. */
  withdraw(): void;
}

/** Holds the given slots; undefined where there are none. `isStale` says that what is inserted now must not begin. */
export function makeOffer(
  floor: Floor,
  free: ReadonlyMap<string, number>,
  isStale: () => boolean = () => false,
): Offer | undefined {
  if (free.size === 0) return undefined;
  const { worker, leaseMs, slots, running } = floor;
  const token = running.expect();
  const askedAt = steadyMs();
  for (const [queue, count] of free) slots.take(queue, count);

  function settle(jobs: readonly Job[]): void {
    for (const [queue, count] of free) {
      const started = jobs.filter((job) => job.queue === queue).length;
      if (count > started) slots.release(queue, count - started);
      // another version of us may have moved a handler to this queue: the database knows of it, and we do not
      else if (started > count) slots.take(queue, started - count);
    }
    for (const job of jobs) floor.run(job, askedAt);
    running.expectNoMore(token);
  }

  function withdraw(): void {
    settle([]);
    floor.giveBackClaim(token, [...free.keys()]);
  }

  return {
    worker,
    token,
    leaseMs,
    queues: [...free.keys()],
    handlers: [...free.keys()].flatMap((queue) => floor.handlersOf(queue).map(({ name }) => name)),
    takers: (events) => takersOf(events, free, floor.handlersOf),
    // the shift may have ended while the commit was under way: nobody may run them under its name any more
    accept: (jobs) => (jobs.length > 0 && (floor.over.aborted || isStale()) ? withdraw() : settle(jobs)),
    withdraw,
  };
}

/** For each event the handlers that may have one of the free slots: by priority, then in the order of arrival. */
export function takersOf(
  events: readonly NewEvent[],
  free: ReadonlyMap<string, number>,
  handlersOf: (queue: string) => readonly Handler[],
): string[][] {
  const takers = events.map((): string[] => []);
  for (const [queue, slots] of free) {
    const wanted = handlersOf(queue).flatMap((handler) =>
      events.flatMap((event, arrival) => (wants(handler, event) ? { handler, arrival } : [])),
    );
    wanted.sort(inTurn);
    for (const { handler, arrival } of wanted.slice(0, slots)) takers[arrival]!.push(handler.name);
  }
  return takers;
}

interface Wanted {
  readonly handler: Handler;
  readonly arrival: number;
}

function inTurn(a: Wanted, b: Wanted): number {
  const [one, other] = [a.handler, b.handler];
  return other.priority - one.priority || a.arrival - b.arrival || (one.name < other.name ? -1 : 1);
}

/** True where the event makes a job for the handler that need not wait for its key. */
function wants({ target, keyBy }: Handler, { source, type, skip }: NewEvent): boolean {
  return (
    target.kind === "handler" &&
    keyBy === null &&
    skip === null &&
    target.source === source &&
    matches(target.pattern, type)
  );
}
