// What every worker of the drain contests has in common: it is filled, works for a short time, and what it finished is
// counted where it lies, not where it says so.
import pg from "pg";
import { answerBench } from "../program.ts";
import { ACCOUNTS } from "./job.ts";

/** A way to store jobs and to work on them. */
export interface Drainer {
  /** Stores jobs durably, numbered from `first`. */
  store(first: number, count: number): Promise<void>;
  /** How many of the stored jobs are not finished. */
  unfinished(): Promise<number>;
  /** Begins to work; the answer ends it, and resolves when nothing is under way any more. */
  work(): Promise<() => Promise<void>>;
  /** Lets go of everything. */
  end(): Promise<void>;
}

/** What a run came to. */
export interface Drained {
  readonly perSecond: number;
  /** All jobs that were finished, those before and after the clock included. */
  readonly finished: number;
}

/** True in the contest in which handlers change a row. */
export const HAS_EFFECT = process.env.BENCH_EFFECT === "update";

/** How long a worker works. */
export interface Clock {
  /** Before the clock begins: connections are made, statements planned, code compiled. */
  readonly warmSeconds: number;
  readonly seconds: number;
}

const FIRST_MS = 20_000;
/** The clock ends early when so much is done: what comes then is the end of a queue, not its middle. */
const MOST = 0.9;

let handled = 0;

/** Every handler says that it has run. */
export function noteHandled(): void {
  handled += 1;
}

/** A pool on the contestant's database, for those who bring none of their own. */
export function openBenchPool(max: number): pg.Pool {
  return new pg.Pool({ connectionString: process.env.DATABASE_URL, max });
}

/** Answers `fill` and `drain`. */
export async function answerDrain(drainer: Drainer): Promise<void> {
  const pool = openBenchPool(1);
  await pool.query("create table accounts (id integer primary key, balance integer not null default 0)");
  await pool.query("insert into accounts (id) select generate_series(1, $1::integer)", [ACCOUNTS]);
  let stored = 0;

  /** Stores as many as are missing, and vacuums, so that this does not happen while a clock runs. */
  async function fill({ count }: { readonly count: number }): Promise<void> {
    const missing = count - (await drainer.unfinished());
    if (missing > 0) await drainer.store(stored, missing);
    stored += Math.max(0, missing);
    await pool.query("vacuum (analyze)");
  }

  async function drain({ warmSeconds, seconds }: Clock): Promise<Drained> {
    const before = await look(pool, drainer);
    const stop = await drainer.work();
    await until(() => handled > before.handled, FIRST_MS);
    if (handled === before.handled) throw new Error(`no handler ran within ${FIRST_MS} ms`);
    await until(() => false, warmSeconds * 1000);
    const from = await sample(drainer);
    await until(() => handled - before.handled > before.unfinished * MOST, seconds * 1000);
    const to = await sample(drainer);
    await stop();
    const after = await look(pool, drainer);
    const finished = before.unfinished - after.unfinished;
    if (after.handled - before.handled !== finished) {
      throw new Error(`${after.handled - before.handled} handlers ran, and ${finished} jobs were finished`);
    }
    if (HAS_EFFECT && after.balance - before.balance !== finished) {
      throw new Error(`${after.balance - before.balance} effects for ${finished} finished jobs`);
    }
    return { perSecond: (1000 * (from.unfinished - to.unfinished)) / (to.at - from.at), finished };
  }

  answerBench({ fill, drain }, async () => {
    await drainer.end();
    await pool.end();
  });
}

async function sample(drainer: Drainer): Promise<{ readonly at: number; readonly unfinished: number }> {
  const at = performance.now();
  return { at, unfinished: await drainer.unfinished() };
}

async function look(pool: pg.Pool, drainer: Drainer) {
  const { rows } = await pool.query<{ balance: number }>(
    "select sum(balance)::integer as balance from accounts",
  );
  return { unfinished: await drainer.unfinished(), balance: rows[0]!.balance, handled };
}

/** Resolves when it is so, or the time is over. */
async function until(isSo: () => boolean, withinMs: number): Promise<void> {
  for (const end = performance.now() + withinMs; performance.now() < end && !isSo();) {
    await new Promise((resolve) => setTimeout(resolve, Math.min(20, end - performance.now())));
  }
}
