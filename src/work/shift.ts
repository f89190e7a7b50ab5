// A shift: what a worker does between registering and the end of its session. Claims jobs and runs them.
import { crashPoint } from "../crash-point.ts";
import { sleep, steadyMs } from "../clock.ts";
import { claimJobs, startAlone, type Cursor, type Job } from "../storage/claim.ts";
import { promoteKeys } from "../storage/due.ts";
import { describeFault } from "../storage/faults.ts";
import { uuidv7 } from "../storage/ids.ts";
import type { Pool } from "../storage/postgres.ts";
import { giveBack, giveBackClaim, settleManyDone } from "../storage/settle.ts";
import type { Bell } from "./bell.ts";
import { createCompletions } from "./completions.ts";
import { execute, type ExecuteOptions } from "./execute.ts";
import type { Offer } from "./offer.ts";
import { createReturns } from "./returns.ts";
import { createRunning, type Running, type StopReason } from "./running.ts";
import { createSlots } from "./slots.ts";
import type { WorkerOptions } from "./worker.ts";

export interface ShiftOptions extends Omit<WorkerOptions, "url" | "directUrl"> {
  readonly worker: string;
  readonly duties: Pool;
  readonly handlerPool: Pool;
  readonly bells: ReadonlyMap<string, Bell>;
}

export interface Shift {
  readonly worker: string;
  readonly running: Running;
  /** There may be work in the queue. */
  wake(queue: string): void;
  /** Claims and starts jobs until the shift is closed. Never rejects. */
  run(): Promise<void>;
  offer(): Offer | undefined;
  /** Starts nothing more. */
  close(): void;
  /** Resolves when nothing runs. */
  drained(): Promise<void>;
  /** Stops every handler, and gives up what could not be settled. */
  abort(reason: StopReason): void;
}

/** The idle limit of a handler's transaction, as a part of the lease: a stopped worker's must end before its job is taken. */
const IDLE_PART = 5 / 6;

/** After a job that ran alone the others get their turn before the next. */
const ALONE_PAUSE_MS = 50;

const FAULT_PAUSE_MS = 250;

export function createShift(options: ShiftOptions): Shift {
  const { worker, duties, leaseMs, bells } = options;
  const running = createRunning(leaseMs);
  // a free slot is news only where the last claim left something behind
  const slots = createSlots(options.concurrency, (queue) => {
    if (!exhausted.has(queue)) bells.get(queue)?.ring();
  });
  const exhausted = new Set<string>(); // queues whose last claim found less than it asked for, and no news since
  const woken = new Set<string>(); // queues with news since their claim was sent
  const claiming = new Set<string>(); // queues with a claim under way: what is inserted now could overtake it
  const returns = createReturns((error) =>
    options.tell("debug", "a lease could not be given back yet", { error: describeFault(error) }),
  );
  const executing: ExecuteOptions = {
    ...options,
    returns,
    idleMs: Math.round(leaseMs * IDLE_PART),
    completions: createCompletions((completions) => settleManyDone(duties, worker, completions)),
  };
  const closing = new AbortController();
  const isOver = () => closing.signal.aborted;
  const namesIn = (queue: string) =>
    [...options.handlers.values()].flatMap((handler) => (handler.queue === queue ? handler.name : []));

  /** Runs the job in a slot that was taken for it. */
  async function runJob(job: Job, askedAt: number): Promise<void> {
    const entry = running.add(job, askedAt);
    try {
      const report = await execute(entry, options.handlers.get(job.handler)!, executing);
      options.onReport(report);
      if (job.key !== null) await freeKey(job.queue, job.key);
    } finally {
      running.remove(entry);
      slots.release(job.queue, 1);
    }
  }

  async function freeKey(queue: string, key: string): Promise<void> {
    try {
      if ((await promoteKeys(duties, [{ queue, key }])) > 0) {
        bells.get(queue)?.ring();
        options.onReady([queue]);
      }
    } catch {
      // the sweep finds it
    }
  }

  /** Asks for jobs under a token of its own: if the answer is lost, what may have been claimed is given back by it. */
  async function claim(
    queue: string,
    request: { most: number; alone: boolean; after: Cursor },
  ): Promise<{ jobs: Job[]; askedAt: number }> {
    const token = uuidv7(Date.now());
    const askedAt = steadyMs();
    try {
      const handlers = namesIn(queue);
      const jobs = await claimJobs(duties, { queue, handlers, worker, token, leaseMs, ...request });
      return { jobs, askedAt };
    } catch (error) {
      options.tell("warn", "claiming jobs failed", { queue, error: describeFault(error) });
      void returns.until(() => giveBackClaim(duties, worker, token));
      await sleep(FAULT_PAUSE_MS);
      return { jobs: [], askedAt };
    }
  }

  /** Claims for one queue whenever it has free slots and there may be work. */
  async function serveQueue(queue: string): Promise<void> {
    const bell = bells.get(queue)!;
    let after: Cursor = { tenant: "", handler: "" };
    while (!isOver()) {
      const most = slots.free(queue);
      let found = 0;
      if (most > 0) {
        exhausted.delete(queue);
        slots.take(queue, most);
        claiming.add(queue);
        woken.delete(queue);
        const { jobs, askedAt } = await claim(queue, { most, alone: false, after });
        claiming.delete(queue);
        found = jobs.length;
        const last = jobs.at(-1);
        if (last) after = { tenant: last.tenant ?? "", handler: last.handler };
        if (found < most && !woken.delete(queue)) exhausted.add(queue);
        if (found < most) slots.release(queue, most - found);
        if (isOver()) {
          slots.release(queue, found);
          return giveBackUnrun(jobs);
        }
        for (const job of jobs) void runJob(job, askedAt);
      }
      // a full claim may have left more behind; a queue that is full rings when a slot is free
      if (found === 0 || found < most) await bell.wait(options.pollMs);
    }
  }

  /** All free slots of queues that no claim is looking into. They are held until the commit is known. */
  function offer(): Offer | undefined {
    const held = new Map<string, number>();
    for (const queue of bells.keys()) {
      const free = claiming.has(queue) || isOver() ? 0 : slots.free(queue);
      if (free > 0) held.set(queue, free);
    }
    if (held.size === 0) return undefined;
    for (const [queue, free] of held) slots.take(queue, free);
    const token = uuidv7(Date.now());
    const askedAt = steadyMs();
    const settle = (jobs: readonly Job[]) => {
      for (const [queue, free] of held) {
        const started = jobs.filter((job) => job.queue === queue).length;
        if (free > started) slots.release(queue, free - started);
      }
      for (const job of jobs) void runJob(job, askedAt);
    };
    return {
      worker,
      token,
      leaseMs,
      handlers: [...options.handlers.keys()],
      slots: held,
      accept: settle,
      withdraw() {
        settle([]);
        void returns.until(() => giveBackClaim(duties, worker, token));
      },
    };
  }

  function giveBackUnrun(jobs: readonly Job[]): void {
    if (jobs.length === 0) return;
    const back = { reason: "the worker was stopped", delayMs: 0 };
    void returns.until(async () => void (await giveBack(duties, jobs, back)));
  }

  /** Runs jobs that were running when a process died, one at a time and with nothing beside them. */
  async function serveAlone(): Promise<void> {
    while (!isOver()) {
      const found = await claimAlone();
      if (found) await runAlone(found.job, found.askedAt);
      await sleep(found ? ALONE_PAUSE_MS : options.pollMs, closing.signal);
    }
  }

  async function claimAlone(): Promise<{ job: Job; askedAt: number } | undefined> {
    for (const queue of bells.keys()) {
      if (isOver()) return undefined;
      const { jobs, askedAt } = await claim(queue, {
        most: 1,
        alone: true,
        after: { tenant: "", handler: "" },
      });
      if (jobs[0]) return { job: jobs[0], askedAt };
    }
    return undefined;
  }

  async function runAlone(job: Job, askedAt: number): Promise<void> {
    const waiting = running.add(job, askedAt); // its lease is kept alive while its neighbours finish
    await slots.close();
    running.remove(waiting);
    try {
      if (isOver() || waiting.stop.signal.aborted) return giveBackUnrun([job]);
      const startsAt = steadyMs();
      if (!(await startAlone(duties, job, leaseMs).catch(() => false))) return giveBackUnrun([job]);
      crashPoint("work.alone");
      slots.take(job.queue, 1);
      await runJob(job, startsAt);
    } finally {
      slots.reopen();
    }
  }

  return {
    worker,
    running,
    async run() {
      await Promise.all([...[...bells.keys()].map(serveQueue), serveAlone()]);
    },
    wake(queue) {
      woken.add(queue);
      exhausted.delete(queue);
      bells.get(queue)?.ring();
    },
    offer,
    close,
    drained: slots.idle,
    abort(reason) {
      close();
      running.stopAll(reason);
      if (reason === "stopping") returns.stop();
    },
  };

  function close(): void {
    closing.abort();
    for (const bell of bells.values()) bell.ring();
  }
}
