// A handler's transaction: opened when it is first used, and committed only together with the job's completion.
import type pg from "pg";
import { UkemiError } from "../errors.ts";
import { classifyFault, sqlState } from "./faults.ts";
import { cut, type Pool, type Queryable } from "./postgres.ts";
import type { RunSql } from "./settle.ts";

/** What a handler writes through. Plain SQL, or `client` and `pool` for query builders that expect those of `pg`. */
export interface HandlerTransaction extends Queryable {
  /** Behaves like a client of `pg`: for `drizzle({ client: tx.client })` and knex's `.connection(tx.client)`. */
  readonly client: pg.PoolClient;
  /** Behaves like a pool of `pg`: for kysely's `new PostgresDialect({ pool: tx.pool })`. */
  readonly pool: Pick<pg.Pool, "connect" | "query" | "end">;
}

/** The same, for the one who opened it. */
export interface OpenableTransaction {
  readonly tx: HandlerTransaction;
  /** True once a statement was sent. */
  used(): boolean;
  /** True where the database, not the handler, made it fail. */
  lostToInfrastructure(): boolean;
  /** Runs the last statements and commits. Rejects with CommitUnknown where nobody can tell whether it was committed. */
  commit(settle: (run: RunSql) => Promise<void>): Promise<void>;
  rollback(): Promise<void>;
  /** Cuts the connection: a handler that was stopped must not write any more. */
  abandon(): void;
}

export interface TransactionLimits {
  /** Marks the transaction as belonging to this job. */
  readonly setting: { readonly name: string; readonly value: string };
  /** A transaction in which nothing happens for so long is ended by the server: it must be below the lease. */
  readonly idleMs: number;
  readonly statementMs: number;
  /** A commit that is not answered after this time is cut, and unknown. */
  readonly commitMs: number;
}

/** The answer to a COMMIT was lost. */
export class CommitUnknown extends Error {
  override readonly name = "CommitUnknown";
}

const OPEN = `
select
  set_config($1::text, $2::text, true) as job,
  set_config('idle_in_transaction_session_timeout', $3::text, true) as idle,
  set_config('statement_timeout', $4::text, true) as statement,
  case when current_setting('synchronous_commit') in ('off', 'local')
    then set_config('synchronous_commit', 'on', true) end as durable`;

/** Says to which job the transaction belongs, and bounds it. Must be its first statement. */
export async function markTransaction(run: RunSql, limits: TransactionLimits): Promise<void> {
  const { setting, idleMs, statementMs } = limits;
  await run(OPEN, [setting.name, setting.value, String(idleMs), String(statementMs)]);
}

const BEGIN = /^\s*(?:begin|start\s+transaction)\b/i;
const COMMIT = /^\s*(?:commit|end)\b/i;
const ROLLBACK = /^\s*(?:rollback|abort)\b(?!\s+to\b)/i;

/** Nothing is opened until the first statement. */
export function createHandlerTransaction(pool: Pool, limits: TransactionLimits): OpenableTransaction {
  let opening: Promise<pg.PoolClient> | undefined;
  let over: string | undefined;
  let released = false;
  let firstError: unknown;
  let depth = 0; // of transactions that a query builder opened inside ours: savepoints

  async function open(): Promise<pg.PoolClient> {
    const client = await pool.connect();
    client.on("error", noteError);
    try {
      void client.query("begin").catch(noteError);
      await markTransaction((text, values) => client.query(text, values), limits);
      return client;
    } catch (error) {
      cut(client);
      client.release(true);
      throw error;
    }
  }

  function noteError(error: unknown): void {
    firstError ??= error;
  }

  async function run(...args: unknown[]): Promise<pg.QueryResult> {
    if (over !== undefined) throw new UkemiError("transaction_over", `The transaction is over: ${over}.`);
    try {
      const client = await (opening ??= open());
      return await (client.query as (...args: unknown[]) => Promise<pg.QueryResult>)(...nested(args));
    } catch (error) {
      noteError(error);
      throw error;
    }
  }

  /** A BEGIN inside ours becomes a savepoint, and its end the end of that. Ours is ended by us alone. */
  function nested(args: unknown[]): unknown[] {
    const [query, ...rest] = args;
    const text = typeof query === "string" ? query : (query as { text?: unknown } | undefined)?.text;
    if (typeof text !== "string") return args;
    const as = (sql: string) => [
      typeof query === "string" ? sql : { ...(query as object), text: sql },
      ...rest,
    ];
    if (BEGIN.test(text)) return as(`savepoint ukemi_${(depth += 1)}`);
    if (!COMMIT.test(text) && !ROLLBACK.test(text)) return args;
    if (depth === 0) {
      throw new UkemiError(
        "transaction_over",
        "A handler's transaction is committed with its job: return to commit, throw to roll back.",
      );
    }
    const name = `ukemi_${depth--}`;
    return as(COMMIT.test(text) ? `release savepoint ${name}` : `rollback to savepoint ${name}`);
  }

  /** Ends the use of the connection; `broken` ones do not go back to the pool. */
  async function finish(why: string, end: (client: pg.PoolClient) => Promise<void>): Promise<void> {
    over ??= why;
    const client = await opening?.catch(() => undefined);
    if (!client || released) return;
    released = true;
    let broken = false;
    const watchdog = setTimeout(() => cut(client), limits.commitMs);
    try {
      await end(client);
    } catch (error) {
      broken = true;
      throw error;
    } finally {
      clearTimeout(watchdog);
      client.off("error", noteError);
      client.release(broken);
    }
  }

  const query = run as unknown as pg.PoolClient["query"];
  const client = clientLike(query);
  return {
    tx: {
      query: query as Queryable["query"],
      client,
      pool: { query, connect: () => Promise.resolve(client), end: () => Promise.resolve() },
    },
    used: () => opening !== undefined,
    lostToInfrastructure: () => isInfrastructure(firstError),
    async commit(settle) {
      try {
        await (opening ??= open());
        await finish("it was committed", (client) => settleAndCommit(client, settle));
      } catch (error) {
        // a handler that caught a failed statement, or lost the connection, learns of it only now: tell the cause
        const isEcho = sqlState(error) === "25P02" || sqlState(error) === undefined;
        if (isEcho && firstError !== undefined && !(error instanceof CommitUnknown)) throw firstError;
        noteError(error);
        throw error;
      }
    },
    rollback: () =>
      finish("it was rolled back", async (client) => void (await client.query("rollback"))).catch(() => {}),
    abandon: () => void abandon(),
  };

  async function abandon(): Promise<void> {
    over ??= "its handler was stopped";
    const client = await opening?.catch(() => undefined);
    if (!client || released) return;
    released = true;
    cut(client);
    client.release(true);
  }
}

async function settleAndCommit(client: pg.PoolClient, settle: (run: RunSql) => Promise<void>): Promise<void> {
  await settle((text, values) => client.query(text, values));
  let answer: pg.QueryResult;
  try {
    answer = await client.query("commit");
  } catch (error) {
    // a refusal (a deferred constraint) is an answer; anything else may have been committed
    if (classifyFault(error) !== "infrastructure") throw error;
    throw new CommitUnknown("the answer to COMMIT was lost", { cause: error });
  }
  if (answer.command !== "COMMIT") throw new Error("the transaction was rolled back by the server");
}

/** Idle for too long is the handler's doing, although the server ends the connection for it. */
function isInfrastructure(error: unknown): boolean {
  if (error === undefined || error instanceof UkemiError || sqlState(error) === "25P03") return false;
  return classifyFault(error) === "infrastructure";
}

function clientLike(query: pg.PoolClient["query"]): pg.PoolClient {
  const nothing = () => {};
  const client = {
    query,
    release: nothing,
    on: nothing,
    once: nothing,
    off: nothing,
    removeListener: nothing,
  };
  return client as unknown as pg.PoolClient;
}
