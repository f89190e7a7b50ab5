// Serving one queue: whenever it has free slots and there may be work, jobs are claimed and started.
import { createBell } from "./bell.ts";
import type { Floor } from "./floor.ts";

export interface QueueServer {
  /** Claims and starts jobs until the signal fires. Never rejects. */
  serve(over: AbortSignal): Promise<void>;
  /** There may be work. */
  wake(): void;
  /** A slot is free: news only where the last claim left something behind. */
  slotFreed(): void;
  /** Free slots that no claim is reaching for: jobs may be inserted into them. */
  offered(): number;
}

/** A claim costs much, and one more job in it little: slots that become free are gathered, for no longer than this. */
const GATHER_MS = 5;

export function createQueueServer(queue: string, pollMs: number, floor: () => Floor): QueueServer {
  const bell = createBell();
  let claiming = false; // what is inserted as claimed now could overtake what the claim finds
  let exhausted = false; // the last claim found less than it asked for, and there was no news since

  let gathering: NodeJS.Timeout | undefined;

  function gathered(): void {
    gathering = undefined;
    bell.ring();
  }

  async function serve(over: AbortSignal): Promise<void> {
    const { slots, claim, run, giveBackClaim } = floor();
    let afterTenant = "";
    const onOver = () => bell.ring();
    over.addEventListener("abort", onOver);
    while (!over.aborted) {
      const most = slots.free(queue);
      if (most > 0) {
        exhausted = true; // unless news comes while we ask
        claiming = true;
        slots.take(queue, most);
        const { jobs, askedAt } = await claim({ queue, most, alone: false, afterTenant });
        claiming = false;
        afterTenant = jobs.length > 0 ? (jobs.at(-1)!.tenant ?? "") : afterTenant;
        if (jobs.length === most) exhausted = false;
        slots.release(queue, over.aborted ? most : most - jobs.length);
        if (over.aborted && jobs[0]) giveBackClaim(jobs[0].token);
        if (!over.aborted) for (const job of jobs) void run(job, askedAt);
      }
      // a slot that becomes free rings where there may be more
      if (!over.aborted) await bell.wait(pollMs);
    }
    over.removeEventListener("abort", onOver);
  }

  return {
    serve,
    wake() {
      exhausted = false;
      bell.ring();
    },
    slotFreed() {
      if (exhausted) return;
      if (floor().slots.halfFree(queue)) bell.ring();
      else gathering ??= setTimeout(gathered, GATHER_MS);
    },
    offered: () => (claiming ? 0 : floor().slots.free(queue)),
  };
}
