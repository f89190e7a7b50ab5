// Leases to be given back: tried at once, and again until the database has answered.
import { sleep } from "../clock.ts";

export interface Returns {
  /** Does the work until it succeeds or the worker ends, but once in any case; never rejects. */
  until(work: () => Promise<void>): Promise<void>;
  /** Gives up what is still to be done: leases will lapse. */
  stop(): void;
}

const PAUSE_MS_MAX = 1000;

export function createReturns(onFault: (error: unknown) => void): Returns {
  const ending = new AbortController();
  return {
    async until(work) {
      for (let pauseMs = 25; ; pauseMs = Math.min(PAUSE_MS_MAX, pauseMs * 2)) {
        try {
          return await work();
        } catch (error) {
          onFault(error);
          await sleep(pauseMs, ending.signal);
        }
        if (ending.signal.aborted) return;
      }
    },
    stop: () => ending.abort(),
  };
}
