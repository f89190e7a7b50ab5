// Serving jobs that were running when a process died: one of them may have killed it. Each runs with nothing beside it.
import { crashPoint } from "../crash-point.ts";
import { sleep, steadyMs } from "../clock.ts";
import { startAlone, type Job } from "../storage/claim.ts";
import type { Floor } from "./floor.ts";

/** After a job that ran alone the others get their turn before the next. */
const PAUSE_MS = 50;

const NOWHERE = { tenant: "", handler: "" };

/** Looks into every queue until the signal fires. Never rejects. */
export async function serveAlone(
  floor: Floor,
  options: { readonly queues: readonly string[]; readonly pollMs: number },
  over: AbortSignal,
): Promise<void> {
  while (!over.aborted) {
    let found = false;
    for (const queue of options.queues) {
      if (over.aborted) break;
      const { jobs, askedAt } = await floor.claim({ queue, most: 1, alone: true, after: NOWHERE });
      if (jobs[0]) await runAlone(floor, jobs[0], askedAt, over);
      found ||= jobs.length > 0;
    }
    await sleep(found ? PAUSE_MS : options.pollMs, over);
  }
}

async function runAlone(floor: Floor, job: Job, askedAt: number, over: AbortSignal): Promise<void> {
  const { running, slots, duties, leaseMs } = floor;
  const waiting = running.add(job, askedAt); // its lease is kept alive while its neighbours finish
  await slots.close();
  running.remove(waiting);
  try {
    const startsAt = steadyMs();
    const mayRun =
      !over.aborted &&
      !waiting.stop.signal.aborted &&
      (await startAlone(duties, job, leaseMs).catch(() => false));
    if (!mayRun) return floor.giveBack([job]);
    crashPoint("work.alone");
    slots.take(job.queue, 1);
    await floor.run(job, startsAt);
  } finally {
    slots.reopen();
  }
}
