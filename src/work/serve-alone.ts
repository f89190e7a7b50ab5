// Serving jobs that were running when a process died: one of them may have killed it. Each runs with nothing beside it.
import { crashPoint } from "../crash-point.ts";
import { sleep, steadyMs } from "../clock.ts";
import { startAlone, type Job } from "../storage/claim.ts";
import type { Bell } from "./bell.ts";
import type { Floor } from "./floor.ts";

/** After so many jobs that ran alone the others get their turn. */
const IN_A_ROW = 10;
const PAUSE_MS = 50;

/** A killed worker's jobs must run elsewhere within seconds, whatever the others' polling. */
const POLL_MS_MAX = 1000;

/** How long its neighbours may take to finish. Those that take longer run beside it: it must not wait for ever. */
const PATIENCE_MS = 1500;

/** How long it must have been quiet: a job that has ended may still kill the process, by a promise that nobody awaits. */
const QUIET_MS = 1000;

export interface AloneOptions {
  readonly queues: readonly string[];
  readonly pollMs: number;
  /** Rings when jobs were taken over. */
  readonly bell: Bell;
}

/** Looks into every queue until the signal fires. Never rejects. */
export async function serveAlone(
  floor: Floor,
  { queues, pollMs, bell }: AloneOptions,
  over: AbortSignal,
): Promise<void> {
  over.addEventListener("abort", () => bell.ring(), { once: true });
  while (!over.aborted) {
    let found = false;
    for (const queue of queues) {
      if (over.aborted) break;
      const served = await serveSome(floor, queue, over); // not behind `||`: every queue has its turn
      found ||= served;
    }
    if (found) await sleep(PAUSE_MS, over);
    else await bell.wait(Math.min(pollMs, POLL_MS_MAX));
  }
}

/** Runs what is there, one at a time; true where there was something. */
async function serveSome(floor: Floor, queue: string, over: AbortSignal): Promise<boolean> {
  try {
    for (let nth = 0; nth < IN_A_ROW && !over.aborted; nth++) {
      const { jobs, askedAt } = await floor.claim({ queue, most: 1, alone: true, afterTenant: "" });
      if (!jobs[0]) return nth > 0;
      floor.slots.close();
      floor.giveBackAhead(); // what waits for a slot must not start beside it
      await runAlone(floor, jobs[0], { askedAt, waits: nth === 0 }, over);
    }
    return true;
  } finally {
    floor.slots.reopen();
  }
}

async function runAlone(
  floor: Floor,
  job: Job,
  { askedAt, waits }: { readonly askedAt: number; readonly waits: boolean },
  over: AbortSignal,
): Promise<void> {
  const { running, slots, duties, leaseMs } = floor;
  const waiting = running.add(job, askedAt); // its lease is kept alive while its neighbours finish
  const until = steadyMs() + PATIENCE_MS;
  const isQuiet = () => !waits || slots.quietMs() >= QUIET_MS;
  while (!isQuiet() && !over.aborted && steadyMs() < until) await sleep(25, over);
  const startsAt = steadyMs();
  const mayRun =
    !over.aborted && !waiting.stop.reason() && (await startAlone(duties, job, leaseMs).catch(() => false));
  running.remove(waiting);
  if (!mayRun) return floor.giveBackClaim(job.token, [job.queue]);
  crashPoint("work.alone");
  slots.take(job.queue, 1);
  await floor.runAtOnce(job, startsAt);
}
