// What a handler sends through its transaction, until that is over.
import type pg from "pg";
import { UkemiError } from "../errors.ts";
import type { Blame } from "./blame.ts";
import { clientLike, withCallbacks } from "./client-like.ts";
import type { Queryable } from "./postgres.ts";
import { createSavepoints, type Sender } from "./savepoints.ts";

/** What a handler writes through. Plain SQL, or `client` and `pool` for query builders that expect those of `pg`. */
export interface HandlerTransaction extends Queryable {
  /**
   * Sends a statement whose answer the handler does not need: nothing waits for it, and it goes out together with what
   * follows. Where it fails, the try fails.
   */
  send(query: pg.QueryConfig): void;
  send(text: string, values?: unknown[]): void;
  /** Behaves like a client of `pg`: for `drizzle({ client: tx.client })` and knex's `.connection(tx.client)`. */
  readonly client: pg.PoolClient;
  /** Behaves like a pool of `pg`: for kysely's `new PostgresDialect({ pool: tx.pool })`. */
  readonly pool: Pick<pg.Pool, "connect" | "query" | "end">;
}

export interface Statements {
  readonly tx: HandlerTransaction;
  /** Refuses every statement from now on; the first reason is told. */
  end(why: string): void;
  /** Throws where one was refused and nobody waited for it, or an inner transaction is still open. */
  requireSound(): void;
  /** True where every statement that somebody waits for was answered, and none failed. */
  allWentWell(): boolean;
  /** Resolves when every statement has been given to the connection. */
  handedOver(): Promise<void>;
}

export interface StatementOptions {
  readonly blame: Blame;
  /** Asked for the connection before each statement, and may refuse that one. */
  readonly clientFor: (text: string, waitedFor: boolean) => Promise<pg.ClientBase>;
  /** A statement that nobody waits for has failed. */
  readonly onSendFailed?: () => void;
}

export function createStatements({ blame, clientFor, onSendFailed }: StatementOptions): Statements {
  const savepoints = createSavepoints();
  let over: string | undefined;
  let unanswered = 0; // or failed
  let sendFailed = false;
  let refusal: UkemiError | undefined; // of one that nobody waited for
  let handing: Promise<unknown> = Promise.resolve();

  /** `client.query` of `pg`: text and values, or an object with both. */
  async function run(
    by: Sender,
    [query, ...rest]: readonly unknown[],
    waitedFor = true,
  ): Promise<pg.QueryResult> {
    if (over !== undefined) throw new UkemiError("transaction_over", `The transaction is over: ${over}.`);
    const asText = typeof query === "string";
    const { text } = asText ? { text: query } : (query as { readonly text?: unknown });
    if (typeof text !== "string" || "submit" in Object(query)) {
      throw new UkemiError(
        "transaction_over",
        "A handler's transaction takes statements, not cursors or streams.",
      );
    }
    if (waitedFor) unanswered += 1;
    try {
      const opened = clientFor(text, waitedFor);
      handing = opened;
      const client = await opened;
      const send = client.query.bind(client) as (...args: unknown[]) => Promise<pg.QueryResult>;
      const result = await savepoints.run(text, by, (sql) =>
        send(asText ? sql : { ...(query as object), text: sql }, ...rest),
      );
      if (waitedFor) unanswered -= 1;
      return result;
    } catch (error) {
      // what nobody waited for is the cause of what fails behind it
      const cause = blame.note(error, { isLast: sendFailed });
      if (!waitedFor) noteFailed(error);
      throw cause;
    }
  }

  function send(...args: readonly unknown[]): void {
    run(null, args, false).catch(() => {}); // noted
  }

  /** Of a statement that nobody waits for. */
  function noteFailed(error: unknown): void {
    if (error instanceof UkemiError) return void (refusal ??= error); // it was never sent
    sendFailed = true;
    onSendFailed?.();
  }

  const query = withCallbacks((args) => run(null, args));
  const connect = () => {
    const by = {};
    return Promise.resolve(clientLike(withCallbacks((args) => run(by, args))));
  };
  return {
    tx: {
      send,
      query: query as Queryable["query"],
      client: clientLike(query),
      pool: { query, connect: connect as pg.Pool["connect"], end: () => Promise.resolve() },
    },
    end: (why) => void (over ??= why),
    requireSound() {
      if (refusal) throw refusal;
      if (!savepoints.isOpen()) return;
      throw new UkemiError(
        "transaction_over",
        "The handler ended before a transaction that it opened inside its own.",
      );
    },
    allWentWell: () => unanswered === 0,
    async handedOver() {
      await handing.catch(() => {});
    },
  };
}
