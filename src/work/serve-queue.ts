// Serving one queue: whenever it has free slots and there may be work, jobs are claimed and started.
import { steadyMs } from "../clock.ts";
import type { Job } from "../storage/claim.ts";
import { createBell } from "./bell.ts";
import type { Floor } from "./floor.ts";

export interface QueueServer {
  /** Claims and starts jobs until the signal fires. Never rejects. */
  serve(over: AbortSignal): Promise<void>;
  /** There may be work. */
  wake(): void;
  /** A slot is free: news only where the last claim left something behind. */
  slotFreed(): void;
  /** The queue was paused: what a claim under way brings must not begin. */
  hold(): void;
  /** Free slots that no claim is reaching for: jobs may be inserted into them. */
  offered(): number;
}

/** Without news, claims go on behind the last one for so long: what became ready before it is not overtaken for longer. */
const BEHIND_MS = 100;

/** A claim costs much, and one more job in it little: slots that become free are gathered, for no longer than this. */
const GATHER_MS = 5;

export function createQueueServer(queue: string, pollMs: number, floor: () => Floor): QueueServer {
  const bell = createBell();
  let claiming = false; // what is inserted as claimed now could overtake what the claim finds
  let exhausted = false; // the last claim found less than it asked for, and there was no news since
  let hasNews = true; // since the last claim
  let held = false; // since then
  let gathering: NodeJS.Timeout | undefined;

  function gathered(): void {
    gathering = undefined;
    bell.ring();
  }

  /** One more job in a claim costs little. While none is missing here, a few are not worth one. */
  function isWorthIt(): boolean {
    const { slots } = floor();
    return slots.free(queue) > 0 || slots.halfFree(queue);
  }

  async function serve(over: AbortSignal): Promise<void> {
    const { slots, claim, run, giveBackClaim } = floor();
    let afterTenant = "";
    let behind: string | undefined;
    let begunAt = 0; // when a claim last began at the beginning
    const onOver = () => bell.ring();
    over.addEventListener("abort", onOver);
    while (!over.aborted) {
      const most = isWorthIt() ? slots.claimable(queue) : 0;
      if (most > 0) {
        exhausted = true; // unless news comes while we ask
        claiming = true;
        slots.take(queue, most);
        if (hasNews || steadyMs() - begunAt > BEHIND_MS) behind = undefined;
        if (behind === undefined) begunAt = steadyMs();
        hasNews = false;
        held = false;
        const { jobs, askedAt } = await claim({ queue, most, alone: false, behind, afterTenant });
        claiming = false;
        behind = jobs.length === most ? endOfOneKind(jobs) : undefined;
        afterTenant = jobs.length > 0 ? (jobs.at(-1)!.tenant ?? "") : afterTenant;
        if (jobs.length === most) exhausted = false;
        if (jobs.length > 0) slots.weigh(queue, meanBytes(jobs));
        // with one free slot a claim looks at one tenant only: from the beginning again, before there is nothing
        if (jobs.length === 0 && afterTenant !== "") {
          afterTenant = "";
          bell.ring();
        }
        const mayBegin = !over.aborted && !held && !slots.isClosed();
        slots.release(queue, mayBegin ? most - jobs.length : most);
        if (mayBegin) for (const job of jobs) run(job, askedAt);
        else if (jobs[0]) giveBackClaim(jobs[0].token, [queue]);
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
      hasNews = true;
      bell.ring();
    },
    slotFreed() {
      if (exhausted) return;
      const { slots } = floor();
      if (slots.halfFree(queue)) bell.ring();
      else if (slots.free(queue) > 0) gathering ??= setTimeout(gathered, GATHER_MS);
    },
    hold: () => void (held = true),
    offered: () => (claiming ? 0 : floor().slots.free(queue)),
  };
}

function meanBytes(jobs: readonly Job[]): number {
  const bytesOf = ({ event, payload }: Job) => event?.body?.length ?? payload?.length ?? 0;
  return jobs.reduce((sum, job) => sum + bytesOf(job), 0) / jobs.length;
}

/** The last of jobs that are all of one handler and tenant: others would have had their share, so there are none. */
function endOfOneKind(jobs: readonly Job[]): string | undefined {
  const last = jobs.at(-1)!;
  const isOneKind =
    jobs.length > 1 &&
    jobs.every(({ handler, tenant }) => handler === last.handler && tenant === last.tenant);
  return isOneKind ? last.id : undefined;
}
