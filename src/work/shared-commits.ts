// Handlers that share commits: those that wait run one after another in one transaction, on a few lanes.
import { crashPoint } from "../crash-point.ts";
import { steadyMs } from "../clock.ts";
import type { Bounds } from "../storage/begin.ts";
import { CommitUnknown } from "../storage/commit.ts";
import type { Pool } from "../storage/postgres.ts";
import { completionOf, completionOfAll, type SharedCompletion, type Try } from "../storage/settle.ts";
import { createShared, type SharedTransaction } from "../storage/shared-transaction.ts";
import { runAgain, runHandler, type HandlerRun } from "./run-handler.ts";

/** `alone`: nothing was committed, and nothing is known against it. It is to be tried in a transaction of its own. */
export type SharedOutcome = "done" | "alone";

/** The handler's time was over before the database had given it a transaction: no fault of its own. */
export class NeverBegun extends Error {
  override readonly name = "NeverBegun";
  constructor(cause: unknown) {
    super("the database gave no transaction in time", { cause });
  }
}

export interface SharedCommits {
  /** Runs the handler among others. Rejects with what it threw, with NeverBegun, or with CommitUnknown. */
  run(run: HandlerRun, tried: () => Try): Promise<SharedOutcome>;
}

export interface SharedCommitOptions {
  readonly handlerPool: Pool;
  /** Those of a transaction; that of a statement depends on who takes part. */
  readonly bounds: Omit<Bounds, "statementMs">;
}

interface Member {
  /** How often it had to wait for others, and was carried over to a later transaction. */
  readonly carried: number;
  readonly run: HandlerRun;
  readonly tried: () => Try;
  readonly resolve: (outcome: SharedOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/** One whose handler has ended, and waits for the commit. */
interface Kept extends SharedCompletion {
  readonly member: Member;
  /** True where the job was completed in its own part. */
  readonly isSettled: boolean;
}

const LANES = 4;
const SHARE_MAX = 50;

/**
 * How long a statement waits for a lock. Two transactions that hold the rows of many handlers block each other easily, and who
 * waits holds up all that share with it: it is carried over to a later one. Not all wait equally long: two that have met
 * would meet again.
 */
const lockMs = () => Math.round(5 + 10 * Math.random());

/** Who was carried over so often waits for somebody else, who takes longer: it may do so alone. */
const CARRIED_MAX = 10;

/** Nobody joins a transaction that is older: it holds the locks of all its handlers. */
const SHARE_MS = 100;

export function createSharedCommits({ handlerPool, bounds }: SharedCommitOptions): SharedCommits {
  const waiting: Member[] = [];
  let lanes = 0;
  let share = SHARE_MAX; // how many may be in one transaction: fewer where they hold up each other

  async function serve(): Promise<void> {
    for (let first = waiting.shift(); first; first = waiting.shift()) await shareOne(first);
    lanes -= 1;
  }

  /** One transaction, for as many as wait. Never rejects. */
  async function shareOne(first: Member): Promise<void> {
    const statementMs = first.run.limitMs + 1000;
    const transaction = createShared(handlerPool, { ...bounds, statementMs }, lockMs());
    const until = steadyMs() + SHARE_MS;
    const kept: Kept[] = [];
    const heldUp: Member[] = [];
    for (let member: Member | undefined = first; member; member = joining(first)) {
      const one = await takePart(member, transaction);
      if (one === "held up") heldUp.push(member);
      else if (one) kept.push(one);
      const isFull = kept.length >= share || steadyMs() > until;
      if (isFull || heldUp.length > 0 || transaction.isOver()) break;
    }
    if (!(await commitAll(transaction, kept))) heldUp.push(...kept.map(({ member }) => member));
    for (const member of heldUp) carryOver(member);
    // the fewer share a transaction, the shorter it holds what others want
    share = heldUp.length > 0 ? Math.max(1, Math.floor(share / 2)) : Math.min(SHARE_MAX, share + 1);
  }

  function carryOver(member: Member): void {
    if (member.carried === CARRIED_MAX) return member.resolve("alone");
    waiting.push({ ...member, run: runAgain(member.run), carried: member.carried + 1 });
  }

  /** The next one, where it can be in the transaction that `first` began: not one that may take longer. */
  function joining(first: Member): Member | undefined {
    const [next] = waiting;
    return next && next.run.limitMs <= first.run.limitMs ? waiting.shift() : undefined;
  }

  return {
    run: (run, tried) =>
      new Promise((resolve, reject) => {
        waiting.push({ run, tried, resolve, reject, carried: 0 });
        if (lanes === LANES) return;
        lanes += 1;
        setImmediate(() => void serve());
      }),
  };
}

/** Runs one handler between a savepoint and its release. Undefined where it has failed. */
async function takePart(
  member: Member,
  transaction: SharedTransaction,
): Promise<Kept | "held up" | undefined> {
  const { run, tried } = member;
  const { job, trail } = run;
  const part = transaction.next();
  try {
    await runHandler(run, { tx: part.tx, sql: part.tx }, transaction.abandon);
    crashPoint("work.before_settle");
    const attempt = tried();
    // whether its event is a success depends on other jobs, which must wait for this one from here on
    const isSettled = job.siblings > 1;
    await part.keep(isSettled ? completionOf(job, { trail, attempt, within: null }) : undefined);
    return { job, trail, attempt, isSettled, member };
  } catch (error) {
    if (!transaction.isOver()) await part.undo().catch(transaction.abandon);
    const isStopped = run.stop.reason() !== undefined;
    if (!isStopped && (transaction.isHeldUp() || part.fault() === "contention")) return "held up";
    if (isStopped && part.fault() === "infrastructure") member.reject(new NeverBegun(error));
    else if (isStopped || part.fault() === "own") member.reject(error);
    else member.resolve("alone");
    return undefined;
  }
}

/** Commits what was kept, all of it or nothing. False where it is to be tried again: others hold what it needs. */
async function commitAll(transaction: SharedTransaction, kept: readonly Kept[]): Promise<boolean> {
  crashPoint("work.before_shared_commit");
  try {
    if (transaction.isOver() || kept.length === 0) throw new Error("there is nothing to commit");
    const unsettled = kept.filter(({ isSettled }) => !isSettled);
    await transaction.commit(unsettled.length > 0 ? [completionOfAll(unsettled)] : []);
    for (const { member } of kept) member.resolve("done");
  } catch (error) {
    await transaction.rollback();
    if (transaction.isHeldUp()) return false;
    for (const { member } of kept) {
      if (error instanceof CommitUnknown) member.reject(error);
      // a lost lease, a deferred constraint: whose it is shows when each is tried alone
      else member.resolve("alone");
    }
  }
  return true;
}
