// What a call is bound by, as one signal: its time and the wish of whoever asked for it.
import { setMaxListeners } from "node:events";
import type { CallLimits } from "../attempt.ts";

/** A timer that is set for longer fires at once. */
const TIMER_MAX = 2 ** 31 - 1;

export interface Bound {
  readonly signal: AbortSignal;
  /** To be called when the call is over: a timer that is left behind keeps everything it knows. */
  release(): void;
}

/**
 * Fires when the time is up or the caller gives up. Not by `AbortSignal.any` and `AbortSignal.timeout`: in Node 20 what they
 * make together may be collected before it fires.
 */
export function boundBy({ timeoutMs, signal }: CallLimits): Bound {
  const ending = new AbortController();
  const end = () => ending.abort();
  const timer = setTimeout(end, Math.min(timeoutMs, TIMER_MAX));
  setMaxListeners(0, signal); // many calls may share one
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  return {
    signal: ending.signal,
    release() {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
    },
  };
}
