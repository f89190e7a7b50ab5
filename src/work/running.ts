// The jobs that run in this process, and what may stop them.
import { steadyMs } from "../clock.ts";
import type { Job, Lease } from "../storage/claim.ts";
import { uuidv7 } from "../storage/ids.ts";
import { StopSwitch } from "./stop-switch.ts";

/** Why a handler is stopped before it ends. None of these is its own fault, and none burns an attempt. */
export type StopReason = "lease_lost" | "connection_lost" | "stopping";

/** What a stopped handler's signal says. */
export class Stopped extends Error {
  override readonly name = "Stopped";
  readonly reason: StopReason;
  constructor(reason: StopReason) {
    super(`the handler was stopped: ${reason.replace("_", " ")}`);
    this.reason = reason;
  }
}

export interface RunningJob {
  readonly job: Job;
  readonly stop: StopSwitch;
  /** When the lease ends by our own steady clock, counted from before we asked for it. */
  leaseEndsAt: number;
}

export interface Running {
  /** A new token under which jobs are about to be claimed. */
  expect(): string;
  /** The answer is there, or lost. */
  expectNoMore(token: string): void;
  /** Every token under which we hold jobs, or may. */
  tokens(): string[];
  add(job: Job, askedAt: number): RunningJob;
  remove(job: RunningJob): void;
  leases(): Lease[];
  size(): number;
  /** True while a call to the outside may be under way. */
  isCalling(): boolean;
  /** Takes note that those of `leases()` were asked for at that time: which are not in `kept` are lost. Returns the lost ones. */
  extended(asked: readonly Lease[], kept: ReadonlySet<string>, askedAt: number): Job[];
  /** Stops those whose lease has ended by our own clock: the database could not be reached in time. */
  stopLapsed(): Job[];
  stopAll(reason: StopReason): void;
}

export function createRunning(leaseMs: number): Running {
  const jobs = new Map<Lease, RunningJob>();
  const expected = new Set<string>();

  function lose(lost: readonly RunningJob[]): Job[] {
    for (const { stop } of lost) stop.stop(new Stopped("lease_lost"));
    return lost.map(({ job }) => job);
  }

  return {
    expect() {
      const token = uuidv7(Date.now());
      expected.add(token);
      return token;
    },
    expectNoMore: (token) => void expected.delete(token),
    tokens: () => [...expected, ...new Set([...jobs.values()].map(({ job }) => job.token))],
    add(job, askedAt) {
      const running = { job, stop: new StopSwitch(), leaseEndsAt: askedAt + leaseMs };
      jobs.set(job, running);
      return running;
    },
    remove: ({ job }) => void jobs.delete(job),
    leases: () => [...jobs.keys()],
    size: () => jobs.size,
    isCalling: () => [...jobs.values()].some(({ job }) => job.kind === "effect"),
    extended(asked, kept, askedAt) {
      const still = asked.flatMap((lease) => jobs.get(lease) ?? []);
      for (const running of still) if (kept.has(running.job.id)) running.leaseEndsAt = askedAt + leaseMs;
      return lose(still.filter(({ job, stop }) => !kept.has(job.id) && !stop.reason()));
    },
    stopLapsed() {
      const now = steadyMs();
      return lose([...jobs.values()].filter(({ leaseEndsAt, stop }) => leaseEndsAt <= now && !stop.reason()));
    },
    stopAll(reason) {
      for (const { stop } of jobs.values()) stop.stop(new Stopped(reason));
    },
  };
}
