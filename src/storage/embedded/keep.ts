// Keeps the server there for as long as this process needs it: one that was killed, or that ended with the process
// which had started it, is started again at the same address. Connections break; a pool that reconnects goes on.
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { steadyMs } from "../../clock.ts";
import { describeFault } from "../faults.ts";
import type { Tell } from "../news.ts";
import type { Running } from "./join.ts";

/** How long to wait after a start that failed, in milliseconds; the last one again and again. */
const pausesMs = [200, 1_000, 5_000];

/** A server of ours that lived no longer than this is started again only after the same time. */
const briefMs = 1_000;

/** A server that comes back. */
export interface Kept {
  /** What runs now, or ran last. */
  readonly current: Running;
  stop(): Promise<void>;
}

/** Watches `first`; `again` joins or starts anew. */
export function keep(first: Running, again: () => Promise<Running>, tell: Tell): Kept {
  const stopping = new AbortController();
  let current = first;
  let stopped: Promise<void> | undefined;

  const pause = (ms: number | undefined) =>
    delay(ms, undefined, { ref: false, signal: stopping.signal }).catch(() => undefined);

  async function revive(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; failures++) {
      // Somebody deleted the data: a new, empty database in its place would hide that.
      if (!existsSync(current.cluster))
        return tell("error", "the data folder of the embedded PostgreSQL is gone");
      try {
        current = await again();
        return;
      } catch (error) {
        tell("error", "the embedded PostgreSQL does not start again", { error: describeFault(error) });
        await pause(pausesMs[Math.min(failures, pausesMs.length - 1)]);
      }
    }
  }

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      const watched = current;
      const begun = steadyMs();
      await watched.ended;
      // One that keeps being killed as soon as it runs must not keep the machine busy.
      if (!watched.adopted && steadyMs() - begun < briefMs) await pause(briefMs);
      if (stopping.signal.aborted) return;
      tell("warn", "the embedded PostgreSQL ended; starting it again", { pid: watched.pid });
      await revive();
      if (current === watched) return;
    }
  }

  const watching = watch();
  return {
    get current() {
      return current;
    },
    stop: () =>
      (stopped ??= (async () => {
        stopping.abort();
        await current.leave();
        await watching;
        await current.leave(); // one that was being revived just now
      })()),
  };
}
