// A bell: wakes whoever waits. One that rings while nobody waits is heard by the next who comes.
import { sleep } from "../clock.ts";

export interface Bell {
  ring(): void;
  /** Waits for the next ring, at most so long. */
  wait(ms: number): Promise<void>;
}

export function createBell(): Bell {
  let rung = false;
  let waiter = new AbortController();
  return {
    ring() {
      rung = true;
      waiter.abort();
    },
    async wait(ms) {
      if (!rung) await sleep(ms, waiter.signal);
      rung = false;
      waiter = new AbortController();
    },
  };
}
