// A shift: what a worker does between registering and the end of its session. Every queue is served, on one floor.
import { createBell, type Bell } from "./bell.ts";
import { createFloor, type FloorOptions } from "./floor.ts";
import { makeOffer, type Offer } from "./offer.ts";
import type { Running, StopReason } from "./running.ts";
import { serveAlone } from "./serve-alone.ts";
import { createQueueServer } from "./serve-queue.ts";

export interface Shift {
  readonly worker: string;
  readonly running: Running;
  /** Claims and starts jobs until the shift is closed. Never rejects. */
  run(): Promise<void>;
  /** There may be work in the queue. */
  wake(queue: string): void;
  /** The queue was paused: what was claimed ahead of it must not begin. */
  hold(queue: string): void;
  /** Jobs were taken over from a worker that is gone. */
  wakeAlone(): void;
  /** Rings when a job is to be tried again later. */
  readonly due: Bell;
  offer(): Offer | undefined;
  /** Starts nothing more. */
  close(): void;
  /** Resolves when nothing runs. */
  drained(): Promise<void>;
  /** Stops every handler. */
  abort(reason: StopReason): void;
}

export function createShift(
  options: Omit<FloorOptions, "over" | "onFree" | "onNews" | "onScheduled">,
): Shift {
  const over = new AbortController();
  let holds = 0;
  const aloneBell = createBell();
  const dueBell = createBell();
  const queues = [...options.concurrency.keys()];
  const servers = new Map(
    queues.map((queue) => [queue, createQueueServer(queue, options.pollMs, () => floor)]),
  );
  const wake = (queue: string) => servers.get(queue)?.wake();
  const floor = createFloor({
    ...options,
    over: over.signal,
    onFree: (queue) => servers.get(queue)?.slotFreed(),
    onNews: wake,
    onScheduled: dueBell.ring,
  });
  over.signal.addEventListener("abort", () => floor.giveBackAhead(), { once: true });

  return {
    worker: options.worker,
    running: floor.running,
    wake,
    hold(queue) {
      holds += 1;
      servers.get(queue)?.hold();
      floor.giveBackAhead(queue);
    },
    wakeAlone: aloneBell.ring,
    due: dueBell,
    async run() {
      await Promise.all([
        ...[...servers.values()].map((server) => server.serve(over.signal)),
        serveAlone(floor, { queues, pollMs: options.pollMs, bell: aloneBell }, over.signal),
      ]);
    },
    offer() {
      if (over.signal.aborted) return undefined;
      const offered = [...servers].map(([queue, server]) => [queue, server.offered()] as const);
      const before = holds;
      const isStale = () => holds > before || floor.slots.isClosed();
      return makeOffer(floor, new Map(offered.filter(([, count]) => count > 0)), isStale);
    },
    close: () => over.abort(),
    drained: floor.slots.idle,
    abort(reason) {
      over.abort();
      floor.running.stopAll(reason);
      if (reason === "stopping") floor.giveUp();
    },
  };
}
