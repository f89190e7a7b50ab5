// A handler's transaction: opened when it is first used, and committed only together with the job's completion.
import type pg from "pg";
import { UkemiError } from "../errors.ts";
import {
  begin,
  bound,
  isBound,
  isOfRows,
  isPlain,
  mark,
  markOf,
  opensSavepoint,
  tidy,
  type TransactionLimits,
} from "./begin.ts";
import { createBlame } from "./blame.ts";
import { commit, CommitUnknown } from "./commit.ts";
import { isAnswered } from "./faults.ts";
import { createStatements, requireSameText, type HandlerTransaction } from "./handler-statements.ts";
import { commitInOneTrip, learnsNames } from "./one-trip.ts";
import { answeredIn, cut, sendTogether, type Pool } from "./postgres.ts";
import { LeaseLost, type Statement } from "./settle.ts";
import { requireShareable } from "./shared-part.ts";

/** A transaction for the one who opened it. */
export interface OpenableTransaction {
  readonly tx: HandlerTransaction;
  /** True once a statement was sent. */
  used(): boolean;
  /** True where the database, not the handler, made it fail. */
  lostToInfrastructure(): boolean;
  /** Its mark, by which a completion knows it; null while there was nothing by which the handler could have ended it. */
  mark(): string | null;
  /** Runs the last statements and commits. Rejects with CommitUnknown where nobody can tell whether it was committed. */
  commit(last: readonly Statement[]): Promise<void>;
  rollback(): Promise<void>;
  /** Of one that was not used: nobody may begin to, now that its handler has ended. */
  close(): void;
  /** Cuts the connection: a handler that was stopped must not write any more. */
  abandon(): void;
}

/** How many transactions of a connection were sent to their end, and are not answered yet. */
const unanswered = new WeakMap<pg.ClientBase, number>();

/** Behind so many nobody need stand: another connection will be free sooner. */
const UNANSWERED_MAX = 3;

/** Nothing is opened until the first statement. */
export function createHandlerTransaction(pool: Pool, limits: TransactionLimits): OpenableTransaction {
  let opening: Promise<pg.PoolClient> | undefined;
  let begun: Promise<void> | undefined;
  let hasBegun = false;
  let released = false;
  const blame = createBlame();
  let leaves = false; // something behind in the session
  let marked = false;
  let hasUnwaited = false; // statements, whose own time is part of the commit's
  const statements = createStatements({
    blame,
    clientFor,
    mayHold: (text) => opening === undefined && limits.oneTrip && isOfRows(text),
  });

  function opened(): Promise<pg.PoolClient> {
    opening ??= connect().then((client) => {
      // not waited for: what the handler sends goes out with it, and fails where this does
      sendTogether(client);
      const beginning = begin(client, limits, marked ? [markOf(limits)] : []);
      beginning.then(() => (hasBegun = true), blame.note);
      begun = beginning;
      return client;
    });
    return opening;
  }

  async function connect(): Promise<pg.PoolClient> {
    try {
      const client = await pool.connect();
      client.on("error", blame.noteLoss);
      return client;
    } catch (error) {
      blame.connectionLost();
      throw error;
    }
  }

  async function clientFor(text: string, waitedFor: boolean): Promise<pg.PoolClient> {
    if (limits.shareable) requireShareable(text);
    leaves ||= !isPlain(text);
    // It may end the transaction and begin another, or we shall not have heard whether there is one: the completion asks for
    // the mark. A statement that is waited for tells that there is.
    const needsMark = leaves || !waitedFor || opensSavepoint(text);
    hasUnwaited ||= !waitedFor;
    const isLate = needsMark && !marked && opening !== undefined;
    marked ||= needsMark;
    const client = await opened();
    if (isLate) void mark(client, limits).catch(blame.note);
    return client;
  }

  /**
   * Ends the use of the connection. Where others wait for one, they have it as soon as the last statements are sent: theirs go
   * out in the same write, and are answered behind. Otherwise it goes back when these are answered; broken ones do not.
   */
  async function finish(
    { why, passesOn }: { readonly why: string; readonly passesOn: boolean },
    end: (client: pg.PoolClient) => Promise<void>,
  ): Promise<boolean> {
    statements.end(why);
    const client = await opening?.catch(() => undefined);
    if (!client || released) return false;
    released = true;
    const withinMs = limits.commitMs + (hasUnwaited ? limits.statementMs : 0);
    const ending = answeredIn(client, withinMs, end(client));
    const depth = unanswered.get(client) ?? 0;
    const isPassedOn = passesOn && !leaves && pool.waitingCount > 0 && depth < UNANSWERED_MAX;
    unanswered.set(client, depth + 1);
    if (isPassedOn) client.release();
    let broken = false;
    try {
      await ending;
      // it is committed all the same
      if (leaves) await answeredIn(client, limits.commitMs, tidy(client)).catch(() => (broken = true));
      return true;
    } catch (error) {
      broken = true;
      throw error;
    } finally {
      unanswered.set(client, unanswered.get(client)! - 1);
      client.off("error", blame.noteLoss);
      if (!isPassedOn) client.release(broken);
    }
  }

  return {
    tx: statements.tx,
    used: () => opening !== undefined || statements.held().length > 0,
    lostToInfrastructure: blame.isInfrastructure,
    mark: () => (marked ? limits.mark : null),
    async commit(last) {
      try {
        const ended = await (opening === undefined && limits.oneTrip ? commitAtOnce(last) : commitOpen(last));
        if (!ended)
          throw new UkemiError("transaction_over", "The transaction was given up while it was committed.");
      } catch (error) {
        throw blame.note(error, { isLast: !(error instanceof CommitUnknown) });
      }
    },
    async rollback() {
      // a statement that nobody waited for may still run: whoever came behind would wait for it
      await finish({ why: "it was rolled back", passesOn: false }, async (client) => {
        await client.query("rollback");
      }).catch(() => {});
    },
    close: () => statements.end("its handler has ended"),
    abandon: () => void abandon(),
  };

  /** Nothing was sent yet: all of it goes out in one trip. */
  async function commitAtOnce(last: readonly Statement[]): Promise<boolean> {
    statements.requireSound();
    // before anything is waited for: what a handler sends behind its end would go out without a transaction
    statements.end("it was committed");
    const all = [...statements.held(), ...last];
    hasUnwaited = all.length > last.length;
    opening = connect();
    const client = await opening;
    for (const statement of all) requireSameText(client, statement);
    if (!isBound(client, limits)) await answeredIn(client, limits.commitMs, bound(client, limits));
    hasBegun = true;
    const passesOn = !learnsNames(client, all); // where it fails, who comes behind would not know what the server knows
    return finish({ why: "it was committed", passesOn }, () => commitInOneTrip(client, all));
  }

  async function commitOpen(last: readonly Statement[]): Promise<boolean> {
    const isFirst = opening === undefined; // one statement alone needs no transaction
    const client = await opened();
    await statements.handedOver();
    if (!marked && !isFirst) await answeredIn(client, limits.commitMs, begun!).catch(requireBegun);
    statements.requireSound();
    return finish({ why: "it was committed", passesOn: true }, () => commit(client, last, limits));
  }

  async function abandon(): Promise<void> {
    statements.end("its handler was stopped");
    const client = await opening?.catch(() => undefined);
    if (!client || released) return;
    if (!hasBegun) blame.noteSilence(); // or it stood behind another's commit: it never had its time
    released = true;
    cut(client);
    client.release(true);
  }
}

/** What was written without a transaction is there already, and must not be done again. */
function requireBegun(error: unknown): never {
  throw isAnswered(error) ? new LeaseLost() : error;
}
