// The job state machine as it should be, in memory: what a property test holds against the database.
import type { Death } from "../../src/storage/states.ts";

/** Times are microseconds on the database's clock, as it told them. */
export interface ModelJob {
  readonly id: string;
  readonly queue: string;
  readonly handler: string;
  readonly tenant: string | null;
  readonly key: string | null;
  readonly ordered: boolean;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly event: string | null;
  /** Was due when it was made: its place among the jobs of its key is that of its id. */
  readonly immediate: boolean;
  state: "scheduled" | "ready" | "waiting" | "running" | "done" | "dead";
  attempt: number;
  recoveries: number;
  revivals: number;
  death: Death | null;
  keyHeld: boolean;
  started: boolean;
  token: string | null;
  worker: string | null;
  runAt: number;
  leaseUntil: number;
  notYetSince: number | null;
}

export interface Model {
  readonly jobs: Map<string, ModelJob>;
  readonly paused: Set<string>;
  readonly ended: Set<string>;
  /** How many rows the attempts and the audit should have. */
  attempts: number;
  audits: number;
  /** The database's clock when it was last looked at. */
  now: number;
}

export const MINUTE = 60_000_000;

const CRASHES_MAX = 3;

export function createModel(): Model {
  return { jobs: new Map(), paused: new Set(), ended: new Set(), attempts: 0, audits: 0, now: 0 };
}

export function listJobs(model: Model): ModelJob[] {
  return [...model.jobs.values()];
}

/** The job that is running under this lease, if it still is. */
export function heldBy(model: Model, lease: { id: string; token: string }): ModelJob | undefined {
  const job = model.jobs.get(lease.id);
  return job?.state === "running" && job.token === lease.token ? job : undefined;
}

export function byAge(a: ModelJob, b: ModelJob): number {
  return a.runAt - b.runAt || Number(a.id) - Number(b.id);
}

/** Everything that ends a lease comes through here. */
export function leave(job: ModelJob, state: Exclude<ModelJob["state"], "running">): void {
  job.state = state;
  job.token = null;
  job.worker = null;
  job.leaseUntil = 0;
  if (state === "done" || state === "dead") job.keyHeld = false;
}

export function lease(job: ModelJob, token: string, worker: string): void {
  job.state = "running";
  job.token = token;
  job.worker = worker;
}

export function finish(model: Model, job: ModelJob): void {
  leave(job, "done");
  job.attempt += 1;
  job.notYetSince = null;
  if (job.attempt > 1 || job.recoveries > 0) model.attempts += 1;
}

export function die(model: Model, job: ModelJob, death: Death): void {
  leave(job, "dead");
  job.death = death;
  model.audits += 1;
}

/** After a failed try: an ordered job keeps its key, another one lets the next go on. */
export function postpone(job: ModelJob): void {
  leave(job, "scheduled");
  job.keyHeld = job.keyHeld && job.ordered;
}

/** What the clock has brought. */
export function moveDue(model: Model): void {
  const due = listJobs(model).filter(({ state, runAt }) => state === "scheduled" && runAt <= model.now);
  for (const job of due) job.state = job.key === null || job.keyHeld ? "ready" : "waiting";
  promote(model, (job) => due.some((moved) => moved.queue === job.queue && moved.key === job.key));
}

/** The oldest that waits gets the key where nobody holds it. */
export function promote(model: Model, of: (job: ModelJob) => boolean): void {
  const waiting = listJobs(model)
    .filter((job) => job.state === "waiting" && of(job))
    .toSorted(byAge);
  for (const job of waiting) {
    if (holderOf(model, job)) continue;
    job.state = "ready";
    job.keyHeld = true;
  }
}

function holderOf(model: Model, { queue, key }: ModelJob): ModelJob | undefined {
  return listJobs(model).find((other) => other.keyHeld && other.queue === queue && other.key === key);
}

/** Takes what is held by nobody any more; a job that had begun is one crash older. One just missed may come back. */
export function rescue(model: Model, missed?: string): void {
  for (const job of listJobs(model)) {
    const lapsed = job.leaseUntil < model.now && job.worker !== missed;
    if (job.state !== "running" || !(lapsed || model.ended.has(job.worker!))) continue;
    if (job.started) model.attempts += 1;
    if (job.started && job.recoveries >= CRASHES_MAX) die(model, job, "crashed");
    else leave(job, "ready");
    if (job.started) job.recoveries += 1;
  }
}

export function endWorker(model: Model, worker: string): void {
  for (const job of listJobs(model)) {
    if (job.state !== "running" || job.worker !== worker) continue;
    if (job.started) model.attempts += 1;
    leave(job, "ready");
  }
}

export function revive(model: Model, event: string): void {
  for (const job of listJobs(model)) {
    const revivable =
      job.event === event && job.state === "dead" && job.death !== "terminal" && job.revivals === 0;
    if (!revivable) continue;
    const recoveries = job.death === "crashed" ? 1 : 0;
    Object.assign(job, { attempt: 0, recoveries, revivals: 1, death: null, notYetSince: null });
    job.state = job.key === null ? "ready" : "waiting";
    model.audits += 1;
  }
}

/** What a claim may find. */
export function claimable(
  model: Model,
  request: { queue: string; handlers: readonly string[]; alone: boolean },
): ModelJob[] {
  if (model.paused.has(request.queue)) return [];
  return listJobs(model).filter(
    (job) =>
      job.state === "ready" &&
      job.queue === request.queue &&
      request.handlers.includes(job.handler) &&
      job.recoveries > 0 === request.alone,
  );
}
