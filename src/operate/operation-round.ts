// Who runs operations: any process, one step at a time. All that is known of one is in its rows, so that whoever comes next
// goes on where the last one ended.
import { sleep } from "../clock.ts";
import { crashPoint } from "../crash-point.ts";
import type { OperationAlert } from "../observe/alerts.ts";
import type { Act } from "../observe/metrics.ts";
import type { JobKey } from "../storage/due.ts";
import { describeFault } from "../storage/faults.ts";
import type { Tell } from "../storage/news.ts";
import {
  auditEnd,
  noticeEnded,
  postpone,
  readUntilDue,
  readWaiting,
  saveStep,
  takeOperation,
  writeItems,
  type DueItem,
  type ItemResult,
  type Stepped,
  type TakenOperation,
} from "../storage/operations-step.ts";
import type { Pool, Queryable } from "../storage/postgres.ts";
import { dropJobs, replayJobs, type Skip, type SkipReason } from "../storage/replay.ts";
import { letRun } from "./batches.ts";
import { advance, judge, LOOK_MS, nextLook, pace, sizeOf } from "./operation-plan.ts";
import type { Round } from "./rounds.ts";
import { inTransaction } from "./transaction.ts";

/** The round that runs operations. */
export interface OperationRound extends Round {
  /** Looks for work at once: an operation was made or resumed here. */
  wake(): void;
}

export interface OperationRoundOptions {
  readonly alert: (alert: OperationAlert) => void;
  readonly tell: Tell;
  /** Told of every batch that was committed. @default nobody is */
  readonly changed?: (act: Act, jobs: number) => void;
  /** How long an operation must have waited for others before this one makes its first step. @default 0 */
  readonly patienceMs?: number;
}

/** After a step that failed the operation is put off, and the others have their turn. */
const AFTER_FAULT_MS = 5000;

export function createOperationRound(options: OperationRoundOptions): OperationRound {
  let awake = new AbortController();
  // whoever was needed once goes on without waiting
  let patienceMs = options.patienceMs ?? 0;
  const step = async (pool: Pool): Promise<number> => {
    const dueMs = await readUntilDue(pool);
    if (dueMs === undefined) return LOOK_MS.late;
    const waitMs = dueMs + patienceMs;
    if (waitMs > 0) return Math.min(Math.ceil(waitMs), LOOK_MS.late);
    const stepped = await stepOperation(pool, options);
    if (stepped === undefined) return LOOK_MS.soon; // another process is at it
    patienceMs = 0;
    return 0;
  };
  return {
    name: "looking after operations",
    wake: () => awake.abort(),
    async run(duties, ended) {
      awake = new AbortController();
      const wake = awake;
      const end = () => wake.abort();
      ended.addEventListener("abort", end, { once: true });
      try {
        let pauseMs = 0;
        while (pauseMs === 0 && !ended.aborted) pauseMs = await step(duties);
        if (!ended.aborted) await sleep(pauseMs, wake.signal);
      } finally {
        ended.removeEventListener("abort", end);
      }
      return 0;
    },
  };
}

/** Makes one step of the operation that has been due for longest; undefined where there is none. */
export async function stepOperation(
  pool: Pool,
  { alert, tell, changed = () => {} }: OperationRoundOptions,
): Promise<string | undefined> {
  let taken: TakenOperation | undefined;
  try {
    const step = await inTransaction(pool, async (client) => {
      taken = await takeOperation(client);
      if (!taken) return undefined;
      const stepped = await makeStep(client, taken);
      crashPoint("operation.before_commit");
      return stepped;
    });
    if (!step || !taken) return undefined;
    crashPoint("operation.after_commit");
    if (step.changed > 0) changed(step.kind === "replay" ? "replayed" : "dropped", step.changed);
    await letRun(pool, step.keys);
    if (step.state !== taken.state) report(step, alert, tell);
    return step.id;
  } catch (error) {
    if (!taken) throw error;
    const fault = describeFault(error);
    tell("warn", "a step of an operation failed", { operation: taken.id, error: fault });
    // where the database itself is away, this fails too, and the round comes again later
    await postpone(pool, taken.id, AFTER_FAULT_MS, fault);
    return taken.id;
  }
}

function report(step: Stepped, alert: OperationRoundOptions["alert"], tell: Tell): void {
  const { id, name, tenants, stopReason, done, dead, dropped, skipped, gone } = step;
  if (step.state === "stopped") {
    return alert({ kind: "operation_stopped", operation: id, name, tenants, message: stopReason ?? "" });
  }
  tell("info", "operation done", { operation: id, done, dead, dropped, skipped, gone });
}

type Step = Stepped & { readonly keys: readonly JobKey[]; readonly changed: number };

/** Notices what has ended, decides whether and how it goes on, does one batch, and writes all of it down. */
async function makeStep(client: Queryable, taken: TakenOperation): Promise<Step> {
  const noticed = await noticeEnded(client, taken.id);
  const ended = noticed.done + noticed.dead + noticed.gone;
  let now: TakenOperation = {
    ...taken,
    replayed: taken.replayed - ended,
    done: taken.done + noticed.done,
    dead: taken.dead + noticed.dead,
    gone: taken.gone + noticed.gone,
  };
  const stopReason = now.state === "running" ? judge(now) : undefined;
  if (stopReason !== undefined) now = { ...now, state: "stopped", stopReason };
  else if (now.state === "running") now = { ...now, ...advance(now) };

  const size = sizeOf(now);
  const batch = size === 0 ? NOTHING : await doBatch(client, now, size);
  now = { ...now, ...batch.changes };
  if (now.state === "running" && now.waiting === 0 && now.replayed === 0) now = { ...now, state: "done" };

  const moved = ended > 0 || batch.taken > 0;
  const pacedMs = pace(now, batch.count);
  const nextMs = nextLook({ ...now, allowedMs: -pacedMs }, { moved, idleMs: now.idleMs });
  const step: Step = {
    ...now,
    moved,
    acted: batch.taken > 0,
    nextMs,
    pacedMs,
    keys: batch.keys,
    changed: batch.count,
  };
  await saveStep(client, step);
  if (step.state !== taken.state) await auditEnd(client, step, `operation.${step.state}`);
  return step;
}

interface Batch {
  /** How many items were looked at, and how many of them were changed. */
  readonly taken: number;
  readonly count: number;
  readonly keys: readonly JobKey[];
  readonly changes: Partial<TakenOperation>;
}

const NOTHING: Batch = { taken: 0, count: 0, keys: [], changes: {} };

/** Replays or drops the next items, and writes down what became of each. */
async function doBatch(client: Queryable, operation: TakenOperation, size: number): Promise<Batch> {
  const items = await readWaiting(client, operation, size);
  // it would be tried again for ever, without a pause
  if (items.length === 0) throw new Error(`${operation.waiting} items should wait, and none was found`);
  const apply = operation.kind === "replay" ? replayJobs : dropJobs;
  const { count, keys, skips } = await apply(client, {
    ids: items.map(({ job }) => job),
    momentUs: operation.momentUs,
    actor: operation.actor,
    reason: operation.reason,
    tenants: operation.tenants ?? undefined,
    operation: operation.id,
  });
  const results = resultsOf(operation, items, skips);
  await writeItems(client, operation.id, results);
  const countOf = (state: string) => results.filter((item) => item.state === state).length;
  return {
    taken: items.length,
    count,
    keys,
    changes: {
      waiting: operation.waiting - items.length,
      replayed: operation.replayed + countOf("replayed"),
      dropped: operation.dropped + countOf("dropped"),
      skipped: operation.skipped + countOf("skipped"),
      gone: operation.gone + countOf("gone"),
      nextPosition: (items.at(-1)?.position ?? operation.nextPosition) + 1,
      // one that was skipped says nothing: a stage goes on until it has put its number to work
      stageLeft: operation.stageLeft === null ? null : operation.stageLeft - count,
    },
  };
}

const WHY: Readonly<Record<SkipReason, string>> = {
  unknown: "there is no such job any more",
  not_dead: "it was not dead any more when its turn came",
  died_again: "it was replayed elsewhere after it had been chosen, and died anew",
  no_body: "its event's body is gone",
  erased: "its event's body was erased",
};

function resultsOf(
  { kind }: TakenOperation,
  items: readonly DueItem[],
  skips: readonly Skip[],
): readonly ItemResult[] {
  const reasons = new Map(skips.map((skip) => [String(skip.id), skip.reason]));
  return items.map(({ position, job }) => {
    const reason = reasons.get(job);
    if (reason === undefined)
      return { position, state: kind === "replay" ? "replayed" : "dropped", message: null };
    return { position, state: reason === "unknown" ? "gone" : "skipped", message: WHY[reason] };
  });
}
