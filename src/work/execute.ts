// One try at a job, from its claim to its settlement: run the handler → commit it with its completion, or say why not.
import { crashPoint } from "../crash-point.ts";
import { steadyMs } from "../clock.ts";
import type { Job } from "../storage/claim.ts";
import { classifyFault } from "../storage/faults.ts";
import {
  CommitUnknown,
  createHandlerTransaction,
  markTransaction,
  type OpenableTransaction,
  type TransactionLimits,
} from "../storage/handler-transaction.ts";
import type { Pool, Queryable } from "../storage/postgres.ts";
import {
  giveBack,
  JOB_SETTING,
  jobSetting,
  LeaseLost,
  settleDone,
  settleFailed,
  type Death,
  type KeptError,
  type Return,
  type RunSql,
  type Try,
} from "../storage/settle.ts";
import type { Completions } from "./completions.ts";
import { createTrail, nextTrace, readContent } from "./context.ts";
import type { Handler } from "./handler.ts";
import { keepError } from "./kept-error.ts";
import { judge, TimeLimit } from "./outcome.ts";
import type { Returns } from "./returns.ts";
import { Stopped, type RunningJob } from "./running.ts";

/** How a try ended. `returned` burns no attempt; `lost` means that the job is somebody else's now; `unknown` was looked into afterwards. */
export type TryOutcome = "done" | "retry" | "not_yet" | "dead" | "returned" | "lost";

/** What is told of a try when it has ended. */
export interface Report {
  readonly job: Job;
  readonly outcome: TryOutcome;
  readonly durationMs: number;
  readonly worker: string;
  readonly traceId: string;
  readonly death?: Death;
  readonly error?: KeptError;
}

export interface ExecuteOptions {
  readonly worker: string;
  /** Connections for handlers' transactions. */
  readonly handlerPool: Pool;
  /** Connections for what the engine itself writes. */
  readonly duties: Queryable;
  readonly completions: Completions;
  readonly returns: Returns;
  readonly timeLimitMs: number;
  readonly idleMs: number;
}

/** How long a commit may take before its connection is cut. */
const COMMIT_MS = 10_000;

/** How long a job waits after the database failed its handler. */
const INFRASTRUCTURE_PAUSE_MS = 1000;

type End = Pick<Report, "outcome" | "death" | "error">;

/** Runs the handler and settles the job. Never rejects: what cannot be settled is given back, or lapses. */
export async function execute(
  running: RunningJob,
  handler: Handler,
  options: ExecuteOptions,
): Promise<Report> {
  const { job } = running;
  const startedAt = steadyMs();
  const trace = nextTrace(job);
  const trying = { running, handler, options, trace, trail: createTrail(job) };
  const tried = (): Try => ({
    durationMs: steadyMs() - startedAt,
    worker: options.worker,
    traceId: trace.traceId,
  });
  crashPoint("work.claimed");
  const end = await (handler.transaction ? tryOwned(trying, tried) : tryOwn(trying, tried));
  return { job, ...end, durationMs: steadyMs() - startedAt, worker: options.worker, traceId: trace.traceId };
}

interface Trying {
  readonly running: RunningJob;
  readonly handler: Handler;
  readonly options: ExecuteOptions;
  readonly trace: { readonly traceparent: string };
  readonly trail: ReturnType<typeof createTrail>;
}

/** In a transaction of ours, which is opened only if the handler uses it. */
async function tryOwn(trying: Trying, tried: () => Try): Promise<End> {
  const { running, options } = trying;
  const transaction = createHandlerTransaction(options.handlerPool, limitsOf(trying));
  try {
    await runHandler(trying, transaction.tx);
    if (running.stop.signal.aborted) throw running.stop.signal.reason;
    await complete(trying, transaction, tried);
    return { outcome: "done" };
  } catch (error) {
    if (error instanceof CommitUnknown) return resolveUnknown(trying);
    if (error instanceof Stopped || error instanceof TimeLimit) transaction.abandon();
    else await transaction.rollback();
    return fail(trying, error, transaction.lostToInfrastructure(), tried());
  }
}

async function complete(trying: Trying, transaction: OpenableTransaction, tried: () => Try): Promise<void> {
  const { running, options, trail } = trying;
  const { job } = running;
  crashPoint("work.before_settle");
  const alone =
    !transaction.used() && trail.audits.length === 0 && trail.links.size === 0 && job.siblings <= 1;
  if (alone) await options.completions.add({ job, attempt: tried() });
  else {
    await transaction.commit(async (run) => {
      await settleDone(run, job, { trail, attempt: tried(), within: jobSetting(job) });
      crashPoint("work.before_commit");
    });
  }
  crashPoint("work.after_commit");
}

/** In a transaction that an ORM opens: our completion is the last thing that happens in it. */
async function tryOwned(trying: Trying, tried: () => Try): Promise<End> {
  const { running, handler, options, trail } = trying;
  const { job } = running;
  let settled = false;
  let lost = false; // to the database, not to the handler
  try {
    await handler.transaction!.run(
      async (tx, client) => {
        const run: RunSql = (text, values) => client.query(text, values);
        try {
          await markTransaction(run, limitsOf(trying));
        } catch (error) {
          lost = classifyFault(error) === "infrastructure";
          throw error;
        }
        await runHandler(trying, tx);
        if (running.stop.signal.aborted) throw running.stop.signal.reason;
        await settleDone(run, job, { trail, attempt: tried(), within: jobSetting(job) });
        settled = true;
        crashPoint("work.before_commit");
      },
      { timeLimitMs: handler.timeLimitMs ?? options.timeLimitMs },
    );
    crashPoint("work.after_commit");
    return { outcome: "done" };
  } catch (error) {
    if (settled && classifyFault(error) === "infrastructure") return resolveUnknown(trying);
    return fail(trying, error, lost, tried());
  }
}

function limitsOf({ running, handler, options }: Trying): TransactionLimits {
  return {
    setting: { name: JOB_SETTING, value: jobSetting(running.job) },
    idleMs: options.idleMs,
    statementMs: (handler.timeLimitMs ?? options.timeLimitMs) + 1000,
    commitMs: COMMIT_MS,
  };
}

/** Runs the handler until it ends, its time is over, or it is stopped. It may then go on, but can write nothing more. */
async function runHandler({ running, handler, options, trace, trail }: Trying, tx: unknown): Promise<void> {
  const { job, stop } = running;
  const limitMs = handler.timeLimitMs ?? options.timeLimitMs;
  const limit = new AbortController();
  const timer = setTimeout(
    () => limit.abort(new TimeLimit(`the handler did not end within ${limitMs} ms`)),
    limitMs,
  );
  const signal = AbortSignal.any([stop.signal, limit.signal]);
  try {
    const content = readContent(job, trail.link);
    const context = { ...content, tx, audit: trail.audit, signal, traceparent: trace.traceparent };
    await untilAborted(async () => handler.run(context as never), signal);
  } finally {
    clearTimeout(timer);
  }
}

async function untilAborted(work: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    await Promise.race([work(), aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort!);
  }
}

/** Says what follows from what was thrown, and writes it down. */
async function fail(
  { running, handler, options }: Trying,
  thrown: unknown,
  lost: boolean,
  attempt: Try,
): Promise<End> {
  const { job } = running;
  const error = keepError(thrown);
  if (thrown instanceof LeaseLost) return { outcome: "lost", error };
  // on a stop, and after a lost connection, the worker gives back everything it has at once
  if (thrown instanceof Stopped)
    return { outcome: thrown.reason === "lease_lost" ? "lost" : "returned", error };
  if (lost)
    return returnJob(
      options,
      job,
      { reason: `the database failed: ${error.message}`, delayMs: INFRASTRUCTURE_PAUSE_MS },
      error,
    );
  const failure = judge(thrown, job, handler.policy);
  try {
    const death = await settleFailed(options.duties, job, failure, attempt);
    if (death !== null) return { outcome: "dead", death, error: failure.error };
    return { outcome: failure.then === "wait" ? "not_yet" : "retry", error: failure.error };
  } catch (fault) {
    if (fault instanceof LeaseLost) return { outcome: "lost", error };
    return returnJob(
      options,
      job,
      { reason: "the failed try could not be written down", delayMs: INFRASTRUCTURE_PAUSE_MS },
      error,
    );
  }
}

async function returnJob(options: ExecuteOptions, job: Job, back: Return, error: KeptError): Promise<End> {
  let given = false;
  await options.returns.until(async () => {
    given = (await giveBack(options.duties, [job], back)).has(job.id);
  });
  return { outcome: given ? "returned" : "lost", error };
}

/** The answer to COMMIT was lost. Giving the lease back waits for the commit, and finds the job only if there was none. */
async function resolveUnknown({ running, options }: Trying): Promise<End> {
  const error = keepError(new CommitUnknown("the answer to COMMIT was lost"));
  let given: boolean | undefined;
  await options.returns.until(async () => {
    const back = { reason: error.message, delayMs: 0 };
    given = (await giveBack(options.duties, [running.job], back)).has(running.job.id);
  });
  if (given === undefined) return { outcome: "lost", error };
  return given ? { outcome: "returned", error } : { outcome: "done", error };
}
