// A handler's transaction: opened when it is first used, and committed only together with the job's completion.
import type pg from "pg";
import { UkemiError } from "../errors.ts";
import { createBlame } from "./blame.ts";
import { crashPoint } from "../crash-point.ts";
import { classifyFault, isAnswered } from "./faults.ts";
import { cut, sendTogether, type Pool, type Queryable } from "./postgres.ts";
import { clientLike, withCallbacks } from "./client-like.ts";
import { createSavepoints, type Sender } from "./savepoints.ts";
import { LeaseLost, whyNotSettled, type Statement } from "./settle.ts";

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
  commit(last: readonly Statement[]): Promise<void>;
  rollback(): Promise<void>;
  /** Cuts the connection: a handler that was stopped must not write any more. */
  abandon(): void;
}

export interface TransactionLimits {
  /** True behind a transaction pooler: no settings of the session, no named statements. */
  readonly pooled: boolean;
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

/** What the bounds of a connection were last set to. A pooler's connections are not ours to set. */
const bounded = new WeakMap<pg.ClientBase, string>();

type Setting = [name: string, value: string];

const markedBy = ({ setting }: TransactionLimits): Setting => [setting.name, setting.value];

const boundsOf = ({ idleMs, statementMs }: TransactionLimits): Setting[] => [
  ["idle_in_transaction_session_timeout", String(idleMs)],
  ["statement_timeout", String(statementMs)],
];

const setAll = (command: string, settings: readonly Setting[]) =>
  settings.map(([name, value]) => `${command} ${name} = '${value}'`).join("; ");

/** Says to which job the transaction belongs, and bounds it. */
async function begin(client: pg.ClientBase, limits: TransactionLimits): Promise<void> {
  const bounds = boundsOf(limits);
  if (limits.pooled) {
    await client.query(`begin; ${setAll("set local", [markedBy(limits), ...bounds])}`);
    return;
  }
  const marked = `begin; ${setAll("set local", [markedBy(limits)])}`;
  // not in one text: a transaction that is rolled back would take the bounds with it
  await Promise.all([bound(client, setAll("set", bounds)), client.query(marked)]);
}

/** Sets the bounds of the connection, where they are not what they were last set to. */
async function bound(client: pg.ClientBase, bounds: string): Promise<void> {
  if (bounded.get(client) === bounds) return;
  bounded.delete(client);
  await client.query(bounds);
  bounded.set(client, bounds);
}

/** The same for a transaction that somebody else has begun: one statement with a row, which must be the first. */
export function markOf(limits: TransactionLimits): string {
  const set = ([name, value]: Setting, index: number) =>
    `set_config('${name}', '${value}', true) as set_${index}`;
  return `select ${[markedBy(limits), ...boundsOf(limits)].map(set).join(", ")}`;
}

/** All that `discard all` does, but for prepared statements: `pg` believes that those which it has named are there. */
const TIDY = `close all; reset session authorization; reset all; unlisten *;
  select pg_advisory_unlock_all(); discard temp; discard sequences`;

/** What a handler set for the session, or locked, is nobody else's. */
async function tidy(client: pg.ClientBase): Promise<void> {
  bounded.delete(client);
  await client.query(TIDY);
}

/** Nothing is opened until the first statement. */
export function createHandlerTransaction(pool: Pool, limits: TransactionLimits): OpenableTransaction {
  let opening: Promise<pg.PoolClient> | undefined;
  let over: string | undefined;
  let released = false;
  const blame = createBlame();
  let leaves = false; // something behind in the session
  const savepoints = createSavepoints();

  function opened(): Promise<pg.PoolClient> {
    opening ??= open().catch((error: unknown) => {
      blame.connectionLost();
      throw error;
    });
    return opening;
  }

  async function open(): Promise<pg.PoolClient> {
    const client = await pool.connect();
    client.on("error", blame.noteLoss);
    // not waited for: what the handler sends goes out with it, and fails where this does
    sendTogether(client);
    void begin(client, limits).catch(blame.note);
    return client;
  }

  /** `client.query` of `pg`: text and values, or an object with both. */
  async function send(by: Sender, [query, ...rest]: readonly unknown[]): Promise<pg.QueryResult> {
    if (over !== undefined) throw new UkemiError("transaction_over", `The transaction is over: ${over}.`);
    const asText = typeof query === "string";
    const { text } = asText ? { text: query } : (query as { readonly text?: unknown });
    if (typeof text !== "string" || "submit" in Object(query)) {
      throw new UkemiError(
        "transaction_over",
        "A handler's transaction takes statements, not cursors or streams.",
      );
    }
    leaves ||= leavesSomething(text);
    try {
      const client = await opened();
      const run = client.query.bind(client) as (...args: unknown[]) => Promise<pg.QueryResult>;
      return await savepoints.run(text, by, (sql) =>
        run(asText ? sql : { ...(query as object), text: sql }, ...rest),
      );
    } catch (error) {
      throw blame.note(error);
    }
  }

  /**
   * Ends the use of the connection. Where others wait for one, they have it as soon as the last statements are sent: theirs go
   * out in the same write, and are answered behind. Otherwise it goes back when these are answered; broken ones do not.
   */
  async function finish(why: string, end: (client: pg.PoolClient) => Promise<void>): Promise<boolean> {
    over ??= why;
    const client = await opening?.catch(() => undefined);
    if (!client || released) return false;
    released = true;
    const watchdog = setTimeout(() => cut(client), limits.commitMs);
    const ending = end(client);
    const isPassedOn = !leaves && pool.waitingCount > 0;
    if (isPassedOn) client.release();
    let broken = false;
    try {
      await ending;
      if (leaves) await tidy(client).catch(() => (broken = true)); // it is committed all the same
      return true;
    } catch (error) {
      broken = true;
      throw error;
    } finally {
      clearTimeout(watchdog);
      client.off("error", blame.noteLoss);
      if (!isPassedOn) client.release(broken);
    }
  }

  const query = withCallbacks((args) => send(null, args));
  const connect = () => {
    const by = {};
    return Promise.resolve(clientLike(withCallbacks((args) => send(by, args))));
  };
  return {
    tx: {
      query: query as Queryable["query"],
      client: clientLike(query),
      pool: { query, connect: connect as pg.Pool["connect"], end: () => Promise.resolve() },
    },
    used: () => opening !== undefined,
    lostToInfrastructure: blame.isInfrastructure,
    async commit(last) {
      try {
        await opened();
        if (savepoints.isOpen()) {
          throw new UkemiError(
            "transaction_over",
            "The handler ended before a transaction that it opened inside its own.",
          );
        }
        const statements = limits.pooled ? last.map(({ text, values }) => ({ text, values })) : last;
        const ended = await finish("it was committed", (client) => commit(client, statements));
        if (!ended)
          throw new UkemiError("transaction_over", "The transaction was given up while it was committed.");
      } catch (error) {
        throw blame.note(error, { isLast: !(error instanceof CommitUnknown) });
      }
    },
    async rollback() {
      await finish("it was rolled back", async (client) => void (await client.query("rollback"))).catch(
        () => {},
      );
    },
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

/**
 * The last statements and COMMIT go out together. One that fails, as a completion does whose lease was lost, makes the server
 * roll back, so nothing has to be waited for in between.
 */
async function commit(client: pg.PoolClient, last: readonly pg.QueryConfig[]): Promise<void> {
  sendTogether(client);
  const sent = last.map((statement) => client.query(statement));
  crashPoint("work.before_commit");
  const [committed, ...settled] = await Promise.allSettled([client.query("commit"), ...sent]);
  const failed = settled.find((answer) => answer.status === "rejected");
  if (failed && isAnswered(failed.reason)) throw whyNotSettled(failed.reason);
  if (committed.status === "rejected") {
    // a refusal (a deferred constraint) is an answer; anything else may have been committed
    if (classifyFault(committed.reason) !== "infrastructure") throw committed.reason;
    throw new CommitUnknown("the answer to COMMIT was lost", { cause: committed.reason });
  }
  if (committed.value.command !== "COMMIT") throw new Error("the transaction was rolled back by the server");
  // never seen: a completion that was not sent. What was committed without it must not be done again
  if (failed) throw new LeaseLost();
}

/** True for statements that may outlive the transaction: settings, locks, prepared statements of the session. */
function leavesSomething(text: string): boolean {
  const isPlain =
    /^\s*(?:select|insert|update|delete|with|values|merge|savepoint|release|rollback|begin|commit)\b/i;
  return !isPlain.test(text) || /set_config|advisory|;\s*\S/i.test(text);
}
