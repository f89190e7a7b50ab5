// The floor: what everything in a shift shares. Jobs are claimed here, run here, and given back from here.
import { sleep, steadyMs } from "../clock.ts";
import { claimJobs, type ClaimRequest, type Job } from "../storage/claim.ts";
import { promoteKeys } from "../storage/due.ts";
import { describeFault } from "../storage/faults.ts";
import type { Pool } from "../storage/postgres.ts";
import { giveBackClaim, giveBackUnstarted } from "../storage/give-back.ts";
import { settleManyDone } from "../storage/settle.ts";
import { createCompletions } from "./completions.ts";
import { COMMIT_MS, execute, type ExecuteOptions } from "./execute.ts";
import type { Handler } from "./handler.ts";
import { createReturns } from "./returns.ts";
import { createRunning, Stopped, type Running, type RunningJob } from "./running.ts";
import { createSharedCommits } from "./shared-commits.ts";
import { createShelf } from "./shelf.ts";
import { createSlots, type Slots } from "./slots.ts";
import type { WorkerOptions } from "./worker.ts";

export interface FloorOptions extends Omit<WorkerOptions, "url" | "directUrl"> {
  readonly worker: string;
  readonly duties: Pool;
  readonly handlerPool: Pool;
  readonly effectPool: Pool | undefined;
  /** Fires when nothing more may start. */
  readonly over: AbortSignal;
  /** A slot of the queue has become free. */
  readonly onFree: (queue: string) => void;
  /** There may be work in the queue. */
  readonly onNews: (queue: string) => void;
  /** A job is to be tried again later. */
  readonly onScheduled: () => void;
}

/** Jobs that were claimed, and the steady time before they were asked for: their leases count from then. */
export interface Claimed {
  readonly jobs: readonly Job[];
  readonly askedAt: number;
}

export interface Floor {
  readonly worker: string;
  readonly over: AbortSignal;
  readonly leaseMs: number;
  readonly duties: Pool;
  readonly running: Running;
  readonly slots: Slots;
  /** The handlers whose jobs go to this queue. */
  handlersOf(queue: string): readonly Handler[];
  /** Asks for jobs. Never rejects: a claim whose answer was lost is given back, and none came of it. */
  claim(request: Pick<ClaimRequest, "queue" | "most" | "alone" | "behind" | "afterTenant">): Promise<Claimed>;
  /** Runs a job for which a place was taken, as soon as a slot is free. */
  run(job: Job, askedAt: number): void;
  /** Runs a job for which a place was taken, at once. Resolves when it has ended; never rejects. */
  runAtOnce(job: Job, askedAt: number): Promise<void>;
  /** Gives back what was claimed ahead and has not started: of one queue, or of all. */
  giveBackAhead(queue?: string): void;
  /** Gives back whatever was claimed of these queues under the token and not started: the answer was lost, or it came too late. */
  giveBackClaim(token: string, queues: readonly string[]): void;
  /** Gives up what could not be given back yet: its leases will lapse. */
  giveUp(): void;
}

/** The idle limit of a handler's transaction, as a part of the lease: a stopped worker's must end before its job is taken. */
const IDLE_PART = 5 / 6;

const FAULT_PAUSE_MS = 250;

export function createFloor(options: FloorOptions): Floor {
  const { worker, duties, leaseMs, handlers, tell } = options;
  const running = createRunning(leaseMs);
  const slots = createSlots(options.concurrency, options.onFree);
  const shelf = createShelf(giveBackAhead);
  const returns = createReturns((error) =>
    tell("debug", "a lease could not be given back yet", { error: describeFault(error) }),
  );
  const idleMs = Math.round(leaseMs * IDLE_PART);
  const { handlerPool, pooled, oneTrip } = options;
  const executing: ExecuteOptions = {
    ...options,
    returns,
    idleMs,
    sharedCommits: createSharedCommits({
      handlerPool,
      bounds: { pooled, oneTrip, idleMs, commitMs: COMMIT_MS },
    }),
    completions: createCompletions((completions) => settleManyDone(duties, worker, completions)),
  };
  const handlersOf = (queue: string) => [...handlers.values()].filter((handler) => handler.queue === queue);

  /** The next job of the key may run. Where this fails, the sweep finds it. */
  async function freeKey(queue: string, key: string): Promise<void> {
    const promoted = await promoteKeys(duties, [{ queue, key }]).catch(() => 0);
    if (promoted === 0) return;
    options.onNews(queue);
    options.onReady([queue]);
  }

  /** Runs a job in a slot, frees the slot, and starts who waits for it. Never rejects. */
  async function start(entry: RunningJob): Promise<void> {
    const { job } = entry;
    slots.start(job.queue);
    // a process that was stopped for a while goes on with what it read before it looks at its clock
    if (entry.leaseEndsAt <= steadyMs()) entry.stop.stop(new Stopped("lease_lost"));
    try {
      const report = await execute(entry, handlers.get(job.handler)!, executing);
      options.onReport(report);
      if (report.outcome !== "done" && report.outcome !== "dead") options.onScheduled();
      if (job.key !== null) await freeKey(job.queue, job.key);
    } catch (error) {
      tell("error", "a fault in Ukemi while running a job", { job: job.id, error: describeFault(error) });
    } finally {
      running.remove(entry);
      slots.end(job.queue);
      const next = slots.mayStart(job.queue) ? shelf.take(job.queue) : undefined;
      if (next) void start(next);
    }
  }

  /** Whoever has a free slot may have them; what was lost meanwhile is not ours to give. */
  function giveBackAhead(queue?: string): void {
    const ahead = shelf.clear(queue);
    if (ahead.length === 0) return;
    for (const entry of ahead) running.remove(entry);
    void returnUnstarted(ahead.map(({ job }) => job));
    for (const { job } of ahead) slots.release(job.queue, 1);
  }

  async function returnUnstarted(jobs: readonly Job[]): Promise<void> {
    await returns.until(() => giveBackUnstarted(duties, jobs));
    tellOf([...new Set(jobs.map(({ queue }) => queue))]);
  }

  async function returnClaim(token: string, queues: readonly string[]): Promise<void> {
    await returns.until(() => giveBackClaim(duties, worker, token));
    tellOf(queues);
  }

  /** There is work for whoever has a free slot. */
  function tellOf(queues: readonly string[]): void {
    for (const queue of queues) options.onNews(queue);
    options.onReady(queues);
  }

  return {
    worker,
    over: options.over,
    leaseMs,
    duties,
    running,
    slots,
    handlersOf,
    async claim(request) {
      const token = running.expect();
      const askedAt = steadyMs();
      try {
        const mine = { handlers: handlersOf(request.queue).map(({ name }) => name), worker, token, leaseMs };
        return { jobs: await claimJobs(duties, { ...request, ...mine }, options.keyring), askedAt };
      } catch (error) {
        tell("warn", "claiming jobs failed", { queue: request.queue, error: describeFault(error) });
        void returnClaim(token, [request.queue]);
        await sleep(FAULT_PAUSE_MS);
        return { jobs: [], askedAt };
      } finally {
        setImmediate(() => running.expectNoMore(token)); // when whoever asked has started them
      }
    },
    run(job, askedAt) {
      const entry = running.add(job, askedAt);
      if (slots.mayStart(job.queue)) void start(entry);
      else shelf.put(entry, askedAt);
    },
    runAtOnce: (job, askedAt) => start(running.add(job, askedAt)),
    giveBackAhead,
    giveBackClaim: (token, queues) => void returnClaim(token, queues),
    giveUp: returns.stop,
  };
}
