// What a handler sends through its transaction, until that is over.
import type pg from "pg";
import { UkemiError } from "../errors.ts";
import type { Blame } from "./blame.ts";
import { clientLike, withCallbacks } from "./client-like.ts";
import { isAnswered } from "./faults.ts";
import type { Sendable } from "./one-trip.ts";
import { asSent, type Queryable } from "./postgres.ts";
import { createSavepoints, type Sender } from "./savepoints.ts";

/** What a handler writes through. Plain SQL, or `client` and `pool` for query builders that expect those of `pg`. */
export interface HandlerTransaction extends Queryable {
  /**
   * Sends a statement whose answer the handler does not need: nothing waits for it, and it goes out together with what
   * follows, at the latest with the completion. Where it fails, the try fails.
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
  /** Throws where one could not be sent and nobody waited for it, or an inner transaction is still open. */
  requireSound(): void;
  /** True where every statement that somebody waits for was answered, and none failed. */
  allWentWell(): boolean;
  /** Resolves when every statement has been given to the connection. */
  handedOver(): Promise<void>;
  /** Those that were held back. They stay so until one is sent that is not. */
  held(): readonly Sendable[];
}

export interface StatementOptions {
  readonly blame: Blame;
  /** Asked for the connection before each statement, and may refuse that one. */
  readonly clientFor: (text: string, waitedFor: boolean) => Promise<pg.ClientBase>;
  /** A statement that nobody waits for has failed. */
  readonly onSendFailed?: () => void;
  /** True where one that nobody waits for may be held back until the end. @default none is */
  readonly mayHold?: (text: string) => boolean;
}

export function createStatements(options: StatementOptions): Statements {
  const { blame, clientFor, onSendFailed, mayHold = () => false } = options;
  const savepoints = createSavepoints();
  let over: string | undefined;
  let unanswered = 0; // or failed
  let sendFailed = false;
  let failure: unknown; // of one that nobody waited for, and that was never sent
  let handing: Promise<unknown> = Promise.resolve();
  let held: Sendable[] = [];
  let client: pg.PoolClient | undefined;

  /** The text of what was asked for; throws where it cannot be sent. */
  function textOf(query: unknown): string {
    if (over !== undefined) throw new UkemiError("transaction_over", `The transaction is over: ${over}.`);
    const given = Object(query) as { readonly text?: unknown; readonly name?: unknown };
    const text = typeof query === "string" ? query : given.text;
    if (typeof text !== "string" || "submit" in given) {
      throw new UkemiError(
        "transaction_over",
        "A handler's transaction takes statements, not cursors or streams.",
      );
    }
    requireOwnName(given.name);
    if (text.includes("\0")) throw new UkemiError("transaction_over", "A statement has no NUL in its text.");
    return text;
  }

  /** `client.query` of `pg`: text and values, or an object with both. */
  async function run(
    by: Sender,
    [query, ...rest]: readonly unknown[],
    waitedFor = true,
  ): Promise<pg.QueryResult> {
    const text = textOf(query);
    const asText = typeof query === "string";
    letGo(); // what was sent before goes before
    if (waitedFor) unanswered += 1;
    try {
      const opened = clientFor(text, waitedFor);
      handing = opened;
      const client = await opened;
      requireSameText(client, query);
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

  /** Whatever `pg` itself could refuse is refused here, at the line that asks for it: the server would never hear of it. */
  function send(query: string | pg.QueryConfig, values?: unknown[]): void {
    const text = textOf(query);
    const statement: pg.QueryConfig = typeof query === "string" ? { text, ...(values && { values }) } : query;
    if (statement.values !== undefined && !Array.isArray(statement.values)) {
      throw new UkemiError("transaction_over", "The values of a statement must be an array.");
    }
    const ready = { ...statement, name: statement.name || undefined, values: statement.values?.map(asKept) };
    if (mayHold(text)) held.push(ready);
    else sendNow(ready);
  }

  function sendNow(statement: object): void {
    run(null, [statement], false).catch(() => {}); // noted
  }

  function letGo(): void {
    if (held.length === 0) return;
    const sent = held;
    held = [];
    sent.forEach(sendNow);
  }

  /** Of a statement that nobody waits for. */
  function noteFailed(error: unknown): void {
    sendFailed = true;
    // one that the server never heard of does not keep it from committing the others
    if (error instanceof UkemiError || !isAnswered(error)) failure ??= error;
    if (!(error instanceof UkemiError)) onSendFailed?.();
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
      // most handlers ask for neither
      get client() {
        return (client ??= clientLike(query));
      },
      get pool() {
        return { query, connect: connect as pg.Pool["connect"], end: () => Promise.resolve() };
      },
    },
    end: (why) => void (over ??= why),
    requireSound() {
      if (failure !== undefined) throw failure;
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
    held: () => held,
  };
}

/** A value as it is now, whatever becomes of it before it is sent. */
function asKept(value: unknown): unknown {
  const sent = asSent(value);
  return Buffer.isBuffer(sent) ? Buffer.from(sent) : sent;
}

/** Our own names must stand for our own statements, or a completion would not be sent, and COMMIT behind it would. */
const OURS = "ukemi ";

function requireOwnName(name: unknown): void {
  if (name === undefined || name === null || name === "") return;
  if (typeof name === "string" && !name.startsWith(OURS) && !name.includes("\0")) return;
  throw new UkemiError(
    "transaction_over",
    `The name of a statement is a text that does not begin with "${OURS}".`,
  );
}

/** What each name stands for on a connection: `pg` would refuse another text only after COMMIT was sent behind it. */
const named = new WeakMap<pg.ClientBase, Map<string, string>>();

export function requireSameText(client: pg.ClientBase, query: unknown): void {
  const { name, text } = Object(query) as { readonly name?: unknown; readonly text?: unknown };
  if (typeof name !== "string" || typeof text !== "string") return;
  const texts = named.get(client) ?? new Map<string, string>();
  named.set(client, texts);
  const known = texts.get(name) ?? text;
  texts.set(name, known);
  if (known === text) return;
  throw new UkemiError(
    "transaction_over",
    `The statement name ${JSON.stringify(name)} stands for another text: give each text a name of its own.`,
  );
}
