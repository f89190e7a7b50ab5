// What a handler sends through its transaction, until that is over.
import type pg from "pg";
import { UkemiError } from "../errors.ts";
import type { Blame } from "./blame.ts";
import { clientLike, withCallbacks } from "./client-like.ts";
import type { Queryable } from "./postgres.ts";
import { createSavepoints, type Sender } from "./savepoints.ts";

/** What a handler writes through. Plain SQL, or `client` and `pool` for query builders that expect those of `pg`. */
export interface HandlerTransaction extends Queryable {
  /** Behaves like a client of `pg`: for `drizzle({ client: tx.client })` and knex's `.connection(tx.client)`. */
  readonly client: pg.PoolClient;
  /** Behaves like a pool of `pg`: for kysely's `new PostgresDialect({ pool: tx.pool })`. */
  readonly pool: Pick<pg.Pool, "connect" | "query" | "end">;
}

export interface Statements {
  readonly tx: HandlerTransaction;
  /** Refuses every statement from now on; the first reason is told. */
  end(why: string): void;
  /** Throws where a transaction that the handler opened inside its own is still open. */
  requireClosed(): void;
  /** True where every statement that was sent was answered, and none failed. */
  allWentWell(): boolean;
}

/** `clientFor` is asked for the connection before each statement, and may refuse that one. */
export function createStatements(
  blame: Blame,
  clientFor: (text: string) => Promise<pg.ClientBase>,
): Statements {
  const savepoints = createSavepoints();
  let over: string | undefined;
  let unanswered = 0; // or failed

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
    unanswered += 1;
    try {
      const client = await clientFor(text);
      const run = client.query.bind(client) as (...args: unknown[]) => Promise<pg.QueryResult>;
      const result = await savepoints.run(text, by, (sql) =>
        run(asText ? sql : { ...(query as object), text: sql }, ...rest),
      );
      unanswered -= 1;
      return result;
    } catch (error) {
      throw blame.note(error);
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
    end: (why) => void (over ??= why),
    requireClosed() {
      if (!savepoints.isOpen()) return;
      throw new UkemiError(
        "transaction_over",
        "The handler ended before a transaction that it opened inside its own.",
      );
    },
    allWentWell: () => unanswered === 0,
  };
}
