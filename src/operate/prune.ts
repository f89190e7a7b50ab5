// One run of the pruner: whole months of bodies, then rows in small transactions with pauses between them.
import { sleep, steadyMs } from "../clock.ts";
import { crashPoint } from "../crash-point.ts";
import type { Pool, Queryable } from "../storage/postgres.ts";
import {
  FIRST_EVENT,
  removeAttempts,
  removeBodies,
  removeJobs,
  removeOperations,
  removeWorkers,
  type Step,
} from "../storage/retention-batches.ts";
import { removeCalls, removeContents, removeHours } from "../storage/retention-effects.ts";
import {
  isEmptyMonth,
  listOldMonths,
  planMonth,
  replaceMonth,
  type BodyMonth,
  type ReplacedMonth,
} from "../storage/retention-months.ts";
import { ATTEMPTS, JOBS, newestOld } from "../storage/retention-preview.ts";
import {
  endRetention,
  HELD_MS,
  holdRetention,
  takeRetention,
  type Positions,
  type Removed,
  type RetentionLimits,
  type Run,
  type Taken,
} from "../storage/retention.ts";
import { inTransaction } from "./transaction.ts";

/** How far a part of the pruning has come: months of bodies, or ids of rows that were looked at. */
export interface PruneProgress {
  readonly part: "jobs" | "attempts" | "bodies";
  readonly done: number;
  readonly total: number;
}

/** How pruning is watched and stopped. */
export interface PruneOptions {
  readonly onProgress?: (progress: PruneProgress) => void;
  /** Stops between two small transactions; what is done stays done. */
  readonly signal?: AbortSignal;
}

/** What a run removed. Every number was counted. */
export interface PruneResult extends Removed {
  /** Months of bodies that went as a whole, or shrank to what must stay. */
  readonly months: readonly PrunedMonth[];
  /** Months that somebody's long transaction kept from being pruned: they are tried again later. */
  readonly held_up: readonly string[];
  /** True where it was stopped before the end. */
  readonly stopped: boolean;
}

/** A month of bodies that was pruned. */
export interface PrunedMonth extends ReplacedMonth {
  /** Such as `2025-01`. */
  readonly month: string;
}

/** After a run, pruning is due again so much later. */
export const EVERY_MS = 3_600_000;
/** After one that did not come to its end, sooner. */
export const AFTER_HELD_UP_MS = 300_000;

/** Nine tenths of the time belong to others, however slow the machine is: what is read and written here lies on the same disk as their commits. */
const PAUSE_SHARE = 9;
const PAUSE_MS_MIN = 5;
const PAUSE_MS_MAX = 2000;

const DEFAULT_PARTITION = "event_bodies_default";

/** Prunes as this run, unless another does; with `onlyDue`, only where it is time. */
export async function prune(
  pool: Pool,
  run: Run,
  { onlyDue }: { readonly onlyDue: boolean },
  options: PruneOptions = {},
): Promise<Taken & ({ readonly taken: false } | { readonly taken: true; readonly result: PruneResult })> {
  const taken = await inTransaction(pool, (client) => takeRetention(client, run, onlyDue));
  if (!taken.taken) return taken;
  const ended = new AbortController();
  const lost = new AbortController();
  const signal = AbortSignal.any([lost.signal, ...(options.signal ? [options.signal] : [])]);
  const held = hold(pool, run, ended.signal, () => lost.abort());
  const end = async (againMs: number) => {
    ended.abort();
    await held;
    crashPoint("retention.before_audit");
    return inTransaction(pool, (client) => endRetention(client, run, againMs));
  };
  const pruning = { pool, run, limits: run.limits, signal, onProgress: options.onProgress ?? (() => {}) };
  try {
    // bodies first: they give back the most, in the least time; one who may not drop a month still removes rows
    const [bodiesPruned] = await Promise.allSettled([pruneBodies(pruning)]);
    await pruneRows(pruning, taken.positions);
    await pruneEffects(pruning);
    if (bodiesPruned.status === "rejected") throw bodiesPruned.reason;
    const { months, heldUp } = bodiesPruned.value;
    const stopped = signal.aborted;
    const removed = await end(stopped || heldUp.length > 0 ? AFTER_HELD_UP_MS : EVERY_MS);
    const bodies = months.reduce((sum, month) => sum + month.bodies, removed.bodies);
    return { ...taken, result: { ...removed, bodies, months, held_up: heldUp, stopped } };
  } catch (error) {
    // what is gone is audited now if it can be, else by the next run
    await end(AFTER_HELD_UP_MS).catch(() => {});
    throw error;
  }
}

/** Lets others see that the run lives. */
async function hold(pool: Pool, run: Run, ended: AbortSignal, onLost: () => void): Promise<void> {
  for (;;) {
    await sleep(HELD_MS / 3, ended);
    if (ended.aborted) return;
    try {
      if (!(await holdRetention(pool, run))) return onLost();
    } catch {
      // the database is away for a moment: the next time may do, and if another takes over, the next step is refused
    }
  }
}

/** A run under way. */
interface Pruning {
  readonly pool: Pool;
  readonly run: Run;
  readonly limits: RetentionLimits;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PruneProgress) => void;
}

async function pruneRows({ pool, run, limits, signal, onProgress }: Pruning, from: Positions): Promise<void> {
  if (signal.aborted) return;
  await inTransaction(pool, (client) => removeWorkers(client, run));
  if (limits.jobDays > 0) {
    await walk(pool, "", signal, { remove: (client) => removeOperations(client, run, limits.jobDays) });
  }
  const parts = [
    { part: "jobs", table: JOBS, days: limits.jobDays, remove: removeJobs },
    { part: "attempts", table: ATTEMPTS, days: limits.attemptDays, remove: removeAttempts },
  ] as const;
  for (const { part, table, days, remove } of parts) {
    if (days === 0) continue;
    const first = from[part];
    const until = (await newestOld(pool, table, { days, after: first })) ?? first;
    const total = Number(until) - Number(first);
    if (total <= 0) continue;
    await walk(pool, first, signal, {
      remove: (client, after) => remove(client, run, { after, until, days }),
      onStep: (after) => onProgress({ part, done: Number(after) - Number(first), total }),
    });
  }
}

/** After the jobs: an effect whose job is gone cannot be replayed, and lets go of what it held. */
async function pruneEffects({ pool, run, limits, signal }: Pruning): Promise<void> {
  if (signal.aborted) return;
  await inTransaction(pool, (client) => removeHours(client, run));
  const { effectDays, attemptDays } = limits;
  if (effectDays > 0) {
    const remove = (client: Queryable, after: string) =>
      removeContents(client, run, { after, days: effectDays });
    await walk(pool, "", signal, { remove });
  }
  if (attemptDays > 0) {
    const remove = (client: Queryable, after: string) =>
      removeCalls(client, run, { after, days: attemptDays });
    await walk(pool, "", signal, { remove });
  }
}

async function pruneBodies(pruning: Pruning): Promise<{ months: PrunedMonth[]; heldUp: string[] }> {
  const { pool, limits, signal, onProgress } = pruning;
  const months: PrunedMonth[] = [];
  const heldUp: string[] = [];
  if (limits.bodyDays === 0 || signal.aborted) return { months, heldUp };
  await walkBodies(pruning, DEFAULT_PARTITION);
  const old = await listOldMonths(pool, limits.bodyDays);
  for (const [index, month] of old.entries()) {
    if (signal.aborted) break;
    const replaced = await pruneMonth(pruning, month);
    if (replaced) months.push({ month: month.month, ...replaced });
    if (replaced === undefined && !signal.aborted) heldUp.push(month.month);
    onProgress({ part: "bodies", done: index + 1, total: old.length });
  }
  return { months, heldUp };
}

/** Undefined where somebody holds it up; null where it stays, for all that is left in it must. */
async function pruneMonth(pruning: Pruning, month: BodyMonth): Promise<ReplacedMonth | null | undefined> {
  const { pool, run, signal } = pruning;
  if ((await planMonth(pool, month)) === "walk") {
    await walkBodies(pruning, month.table);
    if (!(await isEmptyMonth(pool, month))) return null;
  }
  const replaced = await replaceMonth(pool, run, month, signal);
  crashPoint("retention.month_replaced");
  return replaced;
}

function walkBodies({ pool, run, limits, signal }: Pruning, table: string): Promise<void> {
  return walk(pool, FIRST_EVENT, signal, {
    remove: (client, after) => removeBodies(client, run, { table, after, days: limits.bodyDays }),
  });
}

/** Takes one step after another, each in its own transaction, and leaves the others time between them. */
async function walk(
  pool: Pool,
  from: string,
  signal: AbortSignal,
  {
    remove,
    onStep,
  }: {
    readonly remove: (client: Queryable, after: string) => Promise<Step>;
    readonly onStep?: (after: string) => void;
  },
): Promise<void> {
  let after = from;
  let ended = false;
  while (!ended && !signal.aborted) {
    const startedAt = steadyMs();
    const step = await inTransaction(pool, (client) => remove(client, after));
    crashPoint("retention.batch_removed");
    ({ after, ended } = step);
    onStep?.(after);
    if (ended) return;
    const pauseMs = PAUSE_SHARE * (steadyMs() - startedAt);
    await sleep(Math.min(PAUSE_MS_MAX, Math.max(PAUSE_MS_MIN, pauseMs)), signal);
  }
}
