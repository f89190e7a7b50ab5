// Leases to be given back: tried at once, and again until the database has answered.
import { sleep } from "../clock.ts";

export interface Returns {
  /** Does the work until it succeeds or the worker ends; never rejects. True where it succeeded. */
  until(work: () => Promise<void>): Promise<boolean>;
  /** Gives up what is still to be done: leases will lapse. */
  stop(): void;
}

const PAUSE_MS_MAX = 1000;

export function createReturns(onFault: (error: unknown) => void): Returns {
  const ending = new AbortController();
  return {
    async until(work) {
      for (let pauseMs = 25; !ending.signal.aborted; pauseMs = Math.min(PAUSE_MS_MAX, pauseMs * 2)) {
        try {
          await work();
          return true;
        } catch (error) {
          onFault(error);
          await sleep(pauseMs, ending.signal);
        }
      }
      return false;
    },
    stop: () => ending.abort(),
  };
}
