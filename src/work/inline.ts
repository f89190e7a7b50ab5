// Inline handlers: event, handler and completion are one transaction, and the sender is answered after its commit.
import { steadyMs } from "../clock.ts";
import type { Kinds } from "../effects/effects.ts";
import { UkemiError } from "../errors.ts";
import type { Job } from "../storage/claim.ts";
import {
  storeEvents,
  type NewEvent,
  type SlotOffer,
  type StoredBatch,
  type StoredEvent,
} from "../storage/events.ts";
import { classifyFault } from "../storage/faults.ts";
import { createHandlerTransaction, type OpenableTransaction } from "../storage/handler-transaction.ts";
import { uuidv7 } from "../storage/ids.ts";
import type { Keyring } from "../storage/keyring.ts";
import { closePool, type Pool } from "../storage/postgres.ts";
import { giveBack } from "../storage/give-back.ts";
import { completionOf, type Try } from "../storage/settle.ts";
import { settleFailed } from "../storage/settle-failed.ts";
import type { Report } from "./execute.ts";
import { INLINE, type Handler } from "./handler.ts";
import { keepError } from "./kept-error.ts";
import { isTerminal, judge, type Terminal } from "./outcome.ts";
import { prepareRun, runHandler, type HandlerRun } from "./run-handler.ts";
import { StopSwitch } from "./stop-switch.ts";

export interface InlineOptions {
  /** Opens connections for the transactions, when first needed. */
  readonly openPool: () => Promise<Pool>;
  /** What seals bodies. */
  readonly openKeyring: () => Promise<Keyring>;
  readonly handlers: ReadonlyMap<string, Handler>;
  /** The effects that handlers can intend. */
  readonly kinds: Kinds;
  /** How long a handler may take where it does not say otherwise: somebody waits for the answer. */
  readonly timeLimitMs: number;
  readonly onReport: (report: Report) => void;
  readonly onStored: (batch: StoredBatch) => void;
}

/** Leases are never seen by anyone: the jobs are settled in the transaction that makes them. */
const LEASE_MS = 60_000;
const COMMIT_MS = 10_000;

export interface InlineStore {
  /**
   * Stores the event and runs its inline handlers in one transaction. On failure nothing is stored and the sender must send
   * again; where no retry can help (terminal), the event is stored with its dead letter instead.
   */
  store(event: NewEvent, handlers: readonly Handler[]): Promise<StoredEvent>;
  close(): Promise<void>;
}

export function createInlineStore(options: InlineOptions): InlineStore {
  let opening: Promise<Pool> | undefined;
  async function pool(): Promise<Pool> {
    opening ??= options.openPool();
    return opening.catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
  }
  return {
    store: (event, handlers) =>
      storeInline({ ...options, pool, event, offer: offerFor(handlers, options), startedAt: steadyMs() }),
    async close() {
      const open = await opening?.catch(() => undefined);
      if (open) await closePool(open);
    },
  };
}

/** One visit of an event. */
interface Visit extends InlineOptions {
  readonly pool: () => Promise<Pool>;
  readonly event: NewEvent;
  readonly offer: SlotOffer;
  readonly startedAt: number;
}

/** What a handler threw, and which. */
class HandlerFailed extends Error {
  readonly run: HandlerRun;
  constructor(run: HandlerRun, cause: unknown) {
    super("the handler failed", { cause });
    this.run = run;
  }
}

async function storeInline(visit: Visit): Promise<StoredEvent> {
  try {
    return await attempt(visit);
  } catch (error) {
    if (!(error instanceof HandlerFailed)) throw unavailable(error);
    if (isTerminal(error.cause)) return storeDead(visit, error.run, error.cause);
    report(visit, error.run, { outcome: "retry", error: keepError(error.cause) });
    throw new UkemiError("handler_failed", undefined, { cause: error.cause });
  }
}

function offerFor(inline: readonly Handler[], options: InlineOptions): SlotOffer {
  const names = inline.map((handler) => handler.name);
  const limits = inline.map((handler) => handler.timeLimitMs ?? options.timeLimitMs);
  return {
    worker: uuidv7(Date.now()),
    token: uuidv7(Date.now()),
    leaseMs: LEASE_MS,
    queues: [INLINE],
    handlers: names,
    takers: (events) => events.map(() => names),
    always: true,
    // a second delivery of the same event waits for the first, and then knows whether it is a duplicate
    lockTimeoutMs: limits.reduce((sum, limit) => sum + limit, 0),
  };
}

async function open({ pool, offer, timeLimitMs }: Visit): Promise<OpenableTransaction> {
  const limitMs = Math.max(timeLimitMs, offer.lockTimeoutMs ?? 0) + 1000;
  return createHandlerTransaction(await pool(), {
    pooled: true, // or may be: bounds are set anew for each visit
    oneTrip: false,
    mark: offer.token,
    idleMs: limitMs,
    statementMs: limitMs,
    commitMs: COMMIT_MS,
  });
}

async function store(visit: Visit, { tx }: OpenableTransaction): Promise<StoredBatch> {
  const connection = { query: tx.query, pooled: true };
  const stored = await storeEvents(connection, [visit.event], visit.offer, await visit.openKeyring());
  await tx.query("set local lock_timeout to default"); // that was for the event, not for the handler's statements
  return stored;
}

async function attempt(visit: Visit): Promise<StoredEvent> {
  const transaction = await open(visit);
  const runs: { run: HandlerRun; tried: Try }[] = [];
  let stored: StoredBatch;
  try {
    stored = await store(visit, transaction);
    if (!stored.events[0]!.duplicate && stored.claimed.length < visit.offer.handlers.length) {
      throw new Error("an inline handler has no job: was its subscription removed while the process runs?");
    }
    for (const job of stored.claimed) {
      const run = runOf(visit, job);
      const { tx } = transaction;
      await runHandler(run, { tx, sql: tx }, transaction.abandon).catch((error: unknown) => {
        if (transaction.lostToInfrastructure()) throw error;
        throw new HandlerFailed(run, error);
      });
      runs.push({ run, tried: triedOf(visit, run) });
    }
    const within = transaction.mark();
    await transaction.commit(
      runs.map(({ run, tried }) => completionOf(run.job, { trail: run.trail, attempt: tried, within })),
    );
  } catch (error) {
    await transaction.rollback();
    // an audit line, a link or a deferred constraint that the database refuses is the handlers' doing
    const last = runs.at(-1)?.run;
    const isTheirs =
      last !== undefined && !(error instanceof HandlerFailed) && classifyFault(error) === "refused";
    throw isTheirs ? new HandlerFailed(last, error) : error;
  }
  for (const { run } of runs) report(visit, run, { outcome: "done" });
  visit.onStored(stored);
  return stored.events[0]!;
}

/** Stores the event with a dead letter in place of the handler's work; the other handlers' jobs are left to workers. */
async function storeDead(visit: Visit, failed: HandlerRun, thrown: Terminal): Promise<StoredEvent> {
  const transaction = await open(visit);
  try {
    const { tx } = transaction;
    const stored = await store(visit, transaction);
    const dead = stored.claimed.find((job) => job.handler === failed.handler.name);
    const others = stored.claimed.filter((job) => job !== dead);
    if (dead)
      await settleFailed(
        tx,
        dead,
        judge(thrown, keepError(thrown), dead, failed.handler.policy),
        triedOf(visit, failed),
      );
    if (others.length > 0)
      await giveBack(tx, others, { reason: "another handler of the event died", delayMs: 0 });
    await transaction.commit([]);
    if (dead)
      report(
        visit,
        { ...failed, job: dead },
        { outcome: "dead", death: "terminal", error: keepError(thrown) },
      );
    visit.onStored({ ...stored, ready: others.length > 0 ? [...stored.ready, INLINE] : stored.ready });
    return stored.events[0]!;
  } catch (error) {
    await transaction.rollback();
    throw unavailable(error);
  }
}

function runOf({ handlers, kinds, timeLimitMs }: Visit, job: Job): HandlerRun {
  const handler = handlers.get(job.handler)!;
  const limitMs = handler.timeLimitMs ?? timeLimitMs;
  return prepareRun(job, handler, { kinds, limitMs, stop: new StopSwitch() });
}

function triedOf({ startedAt, offer }: Visit, { trace }: HandlerRun): Try {
  return { durationMs: steadyMs() - startedAt, worker: offer.worker, traceId: trace.traceId };
}

function report(visit: Visit, run: HandlerRun, end: Pick<Report, "outcome" | "death" | "error">): void {
  visit.onReport({ job: run.job, ...end, ...triedOf(visit, run), traceId: run.trace.traceId });
}

/** What the database could not do now the sender may ask for again; what it refuses is told as it is. */
function unavailable(error: unknown): unknown {
  if (error instanceof UkemiError || classifyFault(error) === "refused") return error;
  return new UkemiError("store_unavailable", undefined, { cause: error });
}
