// One try at a job, from its claim to its settlement: run the handler → commit it with its completion, or say why not.
import { crashPoint } from "../crash-point.ts";
import { steadyMs } from "../clock.ts";
import type { Kinds } from "../effects/effects.ts";
import type { UkemiError } from "../errors.ts";
import { markAndBound, type TransactionLimits } from "../storage/begin.ts";
import type { Job } from "../storage/claim.ts";
import { classifyFault } from "../storage/faults.ts";
import { CommitUnknown } from "../storage/commit.ts";
import { createHandlerTransaction, type OpenableTransaction } from "../storage/handler-transaction.ts";
import { createLazyTransaction } from "../storage/lazy-transaction.ts";
import type { Pool, Queryable } from "../storage/postgres.ts";
import { giveBack, holdsLease, type Return } from "../storage/give-back.ts";
import { completionOf, LeaseLost, markFor, settleDone, type RunSql, type Try } from "../storage/settle.ts";
import { settleFailed, type Failure, type KeptError } from "../storage/settle-failed.ts";
import type { Death } from "../storage/states.ts";
import type { Completions } from "./completions.ts";
import type { Handler } from "./handler.ts";
import { keepError } from "./kept-error.ts";
import { judge, terminal, TimeLimit } from "./outcome.ts";
import type { Returns } from "./returns.ts";
import { prepareRun, runAgain, runHandler, type HandlerRun } from "./run-handler.ts";
import { NeverBegun, type SharedCommits } from "./shared-commits.ts";
import { Stopped, type RunningJob } from "./running.ts";
import type { EffectNews, EffectRun } from "./effect-run.ts";
import { tryEffect } from "./try-effect.ts";

/** How a try ended. `returned` burns no attempt; `lost` means that the job is somebody else's now. */
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
  /** The effect that the job carries out. */
  readonly effect?: string;
}

export interface ExecuteOptions {
  readonly worker: string;
  /** Connections for handlers' transactions. */
  readonly handlerPool: Pool;
  /** Connections for what is written about effects; undefined where this process carries out none. */
  readonly effectPool: Pool | undefined;
  readonly onEffectNews: (news: EffectNews) => void;
  /** Connections for what the engine itself writes. */
  readonly duties: Queryable;
  /** The effects that handlers can intend. */
  readonly kinds: Kinds;
  readonly completions: Completions;
  readonly sharedCommits: SharedCommits;
  readonly returns: Returns;
  readonly timeLimitMs: number;
  readonly idleMs: number;
  /** True where handlers' connections go through a transaction pooler. */
  readonly pooled: boolean;
  /** True where a handler's whole transaction may go out in one trip. */
  readonly oneTrip: boolean;
}

/** How long a commit may take before its connection is cut. */
export const COMMIT_MS = 10_000;

/** How long a job waits after the database failed its handler. */
const INFRASTRUCTURE_PAUSE_MS = 1000;

/** How long a job waits whose body this process has no key for. */
const SEALED_PAUSE_MS = 10_000;

type End = Pick<Report, "outcome" | "death" | "error" | "effect">;

/** Runs the handler and settles the job. Never rejects: what cannot be settled is given back, or lapses. */
export async function execute(
  running: RunningJob,
  handler: Handler,
  options: ExecuteOptions,
): Promise<Report> {
  const { job, stop } = running;
  const startedAt = steadyMs();
  const limitMs = handler.timeLimitMs ?? options.timeLimitMs;
  const run = prepareRun(job, handler, { kinds: options.kinds, limitMs, stop });
  const { worker } = options;
  const { traceId } = run.trace;
  const tried = (): Try => ({ durationMs: steadyMs() - startedAt, worker, traceId });
  crashPoint("work.claimed");
  const { target } = handler;
  if (target.kind === "effect") {
    const pool = options.effectPool!;
    const end = await carryOut(
      { ...options, running, performer: target.performer, pool, tried, onNews: options.onEffectNews },
      options,
    );
    return { job, ...end, durationMs: steadyMs() - startedAt, worker, traceId };
  }
  const end = job.event?.unreadable
    ? await failUnread(run, options, { unreadable: job.event.unreadable, attempt: tried() })
    : await wayOf(handler)(run, options, tried);
  return { job, ...end, durationMs: steadyMs() - startedAt, worker, traceId };
}

/** Until a call is begun the database may fail, as it may for any job; from then on the ledger knows what to do. */
async function carryOut(run: EffectRun, options: ExecuteOptions): Promise<End> {
  try {
    return await tryEffect(run);
  } catch (error) {
    const kept = keepError(error);
    if (error instanceof LeaseLost) return { outcome: "lost", error: kept };
    return returnJob(options, run.running.job, {
      reason: `the database failed: ${kept.message}`,
      error: kept,
    });
  }
}

type Way = (run: HandlerRun, options: ExecuteOptions, tried: () => Try) => Promise<End>;

function wayOf({ transaction, sharedCommit }: Handler): Way {
  if (transaction) return tryInOwners;
  return sharedCommit ? tryInShared : tryInOurs;
}

/** In a transaction that it shares with others; where that could not be committed, in one of its own. */
async function tryInShared(run: HandlerRun, options: ExecuteOptions, tried: () => Try): Promise<End> {
  try {
    const outcome = await options.sharedCommits.run(run, tried);
    if (outcome === "done") {
      crashPoint("work.after_commit");
      return { outcome };
    }
  } catch (error) {
    if (error instanceof CommitUnknown) return resolveUnknown(run, options);
    if (error instanceof NeverBegun)
      return fail(run, options, { thrown: error.cause, lost: true, attempt: tried() });
    return fail(run, options, { thrown: error, lost: false, attempt: tried() });
  }
  return tryInOurs(runAgain(run), options, tried);
}

/** In a transaction of ours, which is opened only if the handler uses it. */
async function tryInOurs(run: HandlerRun, options: ExecuteOptions, tried: () => Try): Promise<End> {
  const transaction = createLazyTransaction(() =>
    createHandlerTransaction(options.handlerPool, limitsOf(run, options)),
  );
  try {
    const { tx } = transaction;
    await runHandler(run, { tx, sql: tx }, transaction.abandon);
    await complete(run, transaction, options, tried);
    return { outcome: "done" };
  } catch (error) {
    if (error instanceof CommitUnknown) return resolveUnknown(run, options);
    await transaction.rollback();
    return fail(run, options, { thrown: error, lost: transaction.lostToInfrastructure(), attempt: tried() });
  }
}

async function complete(
  { job, trail }: HandlerRun,
  transaction: OpenableTransaction,
  { completions }: ExecuteOptions,
  tried: () => Try,
): Promise<void> {
  crashPoint("work.before_settle");
  const wroteNothing = !transaction.used() && trail.audits.length === 0 && trail.links.size === 0;
  if (wroteNothing && job.siblings <= 1) {
    transaction.close();
    await completions.add({ job, attempt: tried() }).catch((error: unknown) => {
      if (error instanceof LeaseLost) throw error;
      throw new CommitUnknown("the completion could not be written", { cause: error });
    });
  } else {
    await transaction.commit([completionOf(job, { trail, attempt: tried(), within: transaction.mark() })]);
  }
  crashPoint("work.after_commit");
}

/** In a transaction that an ORM opens: our completion is the last thing that happens in it. */
async function tryInOwners(run: HandlerRun, options: ExecuteOptions, tried: () => Try): Promise<End> {
  const { job, handler, trail, limitMs: timeLimitMs } = run;
  let settled = false;
  let lost = true; // to the database, not to the handler: until the transaction is open, any error is that
  try {
    await handler.transaction!.run(
      async (tx, client) => {
        const runSql: RunSql = (text, values) => client.query(text, values);
        try {
          await runSql(markAndBound(limitsOf(run, options)), []);
          lost = false;
          await runHandler(run, { tx, sql: client }, () => {});
          await settleDone(runSql, job, { trail, attempt: tried(), within: markFor(job) });
        } catch (error) {
          // one that was idle for too long was ended by the server for the handler's own doing
          lost ||= tried().durationMs < options.idleMs && (await isConnectionLost(runSql, error));
          throw error;
        }
        settled = true;
        crashPoint("work.before_commit");
      },
      { timeLimitMs },
    );
    crashPoint("work.after_commit");
    return { outcome: "done" };
  } catch (error) {
    if (settled && classifyFault(error) === "infrastructure") return resolveUnknown(run, options);
    return fail(run, options, { thrown: error, lost, attempt: tried() });
  }
}

/** Errors of an ORM do not tell: the connection itself is asked. A handler that was stopped may still be using it. */
async function isConnectionLost(run: RunSql, error: unknown): Promise<boolean> {
  if (error instanceof Stopped || error instanceof TimeLimit) return false;
  return run("select 1", []).then(
    () => false,
    (fault: unknown) => classifyFault(fault) === "infrastructure",
  );
}

function limitsOf(
  { job, handler, limitMs }: HandlerRun,
  { idleMs, pooled, oneTrip }: ExecuteOptions,
): TransactionLimits {
  return {
    pooled,
    oneTrip,
    mark: markFor(job),
    shareable: handler.sharedCommit,
    idleMs,
    statementMs: limitMs + 1000,
    commitMs: COMMIT_MS,
  };
}

/** Says what follows from what was thrown, and writes it down. */
async function fail(
  run: HandlerRun,
  options: ExecuteOptions,
  { thrown, lost, attempt }: { readonly thrown: unknown; readonly lost: boolean; readonly attempt: Try },
): Promise<End> {
  const { job, handler } = run;
  const error = keepError(thrown);
  if (thrown instanceof LeaseLost) {
    const isOurs = await holdsLease(options.duties, job).catch(() => false);
    if (!isOurs) return { outcome: "lost", error };
    // the fence failed though the lease is ours: the handler ended the transaction, and what it wrote may be committed
    return fail(run, options, {
      thrown: terminal("the handler ended its own transaction"),
      lost: false,
      attempt,
    });
  }
  // on a stop, and after a lost connection, the worker gives back everything it has at once
  if (thrown instanceof Stopped)
    return { outcome: thrown.reason === "lease_lost" ? "lost" : "returned", error };
  if (lost) return returnJob(options, job, { reason: `the database failed: ${error.message}`, error });
  return settle(options, job, judge(thrown, error, job, handler.policy), attempt);
}

/** The handler cannot begin: its event's body is there, and cannot be read. */
async function failUnread(
  { job }: HandlerRun,
  options: ExecuteOptions,
  { unreadable, attempt }: { readonly unreadable: UkemiError; readonly attempt: Try },
): Promise<End> {
  const error = keepError(unreadable);
  // what was changed stays changed: no retry can help, and a person must know
  if (unreadable.code === "body_altered") {
    return settle(options, job, { next: "die", death: "terminal", error }, attempt);
  }
  // another process may have the key, or this one may get it
  return returnJob(options, job, { reason: error.message, error, delayMs: SEALED_PAUSE_MS });
}

/** Writes a failed try down; what cannot be written is given back. */
async function settle(options: ExecuteOptions, job: Job, failure: Failure, attempt: Try): Promise<End> {
  const { error } = failure;
  try {
    const death = await settleFailed(options.duties, job, failure, attempt);
    if (death !== null) return { outcome: "dead", death, error };
    return { outcome: failure.next === "wait" ? "not_yet" : "retry", error };
  } catch (fault) {
    if (fault instanceof LeaseLost) return { outcome: "lost", error };
    return returnJob(options, job, { reason: "the failed try could not be written down", error });
  }
}

async function returnJob(
  options: ExecuteOptions,
  job: Job,
  back: { readonly reason: string; readonly error: KeptError; readonly delayMs?: number },
): Promise<End> {
  const { reason, error, delayMs = INFRASTRUCTURE_PAUSE_MS } = back;
  const given = await giveBackOne(options, job, { reason, delayMs });
  return { outcome: given === true ? "returned" : "lost", error };
}

/** The answer to the commit was lost. Giving the lease back waits for the commit, and finds the job only if there was none. */
async function resolveUnknown({ job }: HandlerRun, options: ExecuteOptions): Promise<End> {
  const error = keepError(new CommitUnknown("the answer to the commit was lost"));
  const given = await giveBackOne(options, job, { reason: error.message, delayMs: INFRASTRUCTURE_PAUSE_MS });
  if (given === undefined) return { outcome: "lost", error };
  return given ? { outcome: "returned", error } : { outcome: "done", error };
}

/** True where the job came back, false where it was not ours any more; undefined where the database never answered. */
async function giveBackOne(
  { duties, returns }: ExecuteOptions,
  job: Job,
  back: Return,
): Promise<boolean | undefined> {
  let given: boolean | undefined;
  await returns.until(async () => {
    given = (await giveBack(duties, [job], back)).has(job.id);
  });
  return given;
}
