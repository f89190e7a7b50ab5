// What every worker of the drain contests has in common: it is filled, works while the clock runs (clock.ts), and what it
// finished is counted where it lies, not where it says so.
import pg from "pg";
import { answerBench } from "../program.ts";
import { ACCOUNTS, FIRST_NUMBER } from "./job.ts";

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

/** How many jobs are left, at a time of this process's clock. */
export interface Sample {
  readonly at: number;
  readonly unfinished: number;
}

/** What can be compared before and after. */
export interface Looked {
  readonly unfinished: number;
  /** Of all accounts; undefined where handlers change none. */
  readonly balance: number | undefined;
}

/** True in the contest in which handlers change a row. */
export const HAS_EFFECT = process.env.BENCH_EFFECT === "update";

let handled = 0;

/** Every handler says that it has run. */
export function noteHandled(): void {
  handled += 1;
}

/** A pool on the contestant's database, for those who bring none of their own. */
export function openBenchPool(max: number): pg.Pool {
  return new pg.Pool({ connectionString: process.env.DATABASE_URL, max });
}

/** Answers what clock.ts asks. */
export async function answerDrain(drainer: Drainer): Promise<void> {
  const pool = openBenchPool(1);
  await makeAccounts(pool);
  let next = FIRST_NUMBER;
  let stop: () => Promise<void> = () => Promise.resolve();

  async function store({ count }: { readonly count: number }): Promise<void> {
    await drainer.store(next, count);
    next += count;
  }

  /** Stores as many as are missing. */
  async function fill({ count }: { readonly count: number }): Promise<void> {
    const missing = count - (await drainer.unfinished());
    if (missing > 0) await store({ count: missing });
  }

  async function sample(): Promise<Sample> {
    const at = performance.now();
    return { at, unfinished: await drainer.unfinished() };
  }

  async function look(): Promise<Looked> {
    const unfinished = await drainer.unfinished();
    return { unfinished, balance: HAS_EFFECT ? await balanceOf(pool) : undefined };
  }

  answerBench(
    {
      store,
      fill,
      /** So that this does not happen while a clock runs. */
      vacuum: async () => void (await pool.query("vacuum (analyze)")),
      sample,
      look,
      handled: () => handled,
      start: async () => void (stop = await drainer.work()),
      stop: () => stop(),
    },
    async () => {
      await drainer.end();
      await pool.end();
    },
  );
}

/** Several processes may share a database. */
async function makeAccounts(pool: pg.Pool): Promise<void> {
  await pool.query(
    "create table if not exists accounts (id integer primary key, balance integer not null default 0)",
  );
  await pool.query(
    "insert into accounts (id) select generate_series(1, $1::integer) on conflict do nothing",
    [ACCOUNTS],
  );
}

async function balanceOf(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ balance: number }>(
    "select sum(balance)::integer as balance from accounts",
  );
  return rows[0]!.balance;
}
