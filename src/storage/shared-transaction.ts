// A transaction that several handlers share: one after another, each between a savepoint and its release, and one commit.
import type pg from "pg";
import { UkemiError } from "../errors.ts";
import { begin, bound, isOfRows, isPlain, type Bounds } from "./begin.ts";
import { createBlame } from "./blame.ts";
import { asQuery, commit } from "./commit.ts";
import { classifyFault, isAnswered } from "./faults.ts";
import { createStatements, requireSameText, type HandlerTransaction } from "./handler-statements.ts";
import { commitInOneTrip, learnsNames, type Sendable } from "./one-trip.ts";
import { answeredIn, cut, sendTogether, type Pool } from "./postgres.ts";
import { LeaseLost, whyNotSettled, type Statement } from "./settle.ts";

/** What one handler does in it. */
export interface Part {
  readonly tx: HandlerTransaction;
  /** Keeps what was written, once the statement that completes the job, where there is one, has been answered. */
  keep(completion?: Statement): Promise<void>;
  /** Undoes what was written. Rejects where the connection is lost. */
  undo(): Promise<void>;
  /** Whose fault a failure is: the handler's own, the database's, or that of others who hold what it needs. */
  fault(): "own" | "infrastructure" | "contention";
}

export interface SharedTransaction {
  /** Begins the part of the next handler: the one before it must have been kept or undone. */
  next(): Part;
  /** Runs the last statements and commits. Rejects with CommitUnknown where nobody can tell whether it was committed. */
  commit(last: readonly Statement[]): Promise<void>;
  rollback(): Promise<void>;
  /** Cuts the connection: a handler that was stopped must not write any more. */
  abandon(): void;
  /** True where it can go no further. */
  isOver(): boolean;
  /** True where that is because a statement that nobody waited for met a lock, or a conflict with another transaction. */
  isHeldUp(): boolean;
}

const SAVEPOINT = "ukemi_part";

/** No statement waits for a lock for longer than `lockMs`. Nothing is opened before somebody waits for an answer, or the commit. */
export function createShared(pool: Pool, bounds: Bounds, lockMs: number): SharedTransaction {
  let connected: pg.PoolClient | undefined;
  let opening: Promise<Opened> | undefined;
  let over = false;
  let heldUp = false;
  let released = false;
  let part: OwnedPart | undefined;
  const held: Sendable[] = []; // of parts that waited for nothing
  const lose = (error: unknown) => {
    over = true;
    part?.noteLoss(error);
  };
  function onBroken(isContention: boolean): void {
    over = true;
    heldUp ||= isContention;
  }

  async function connect(): Promise<pg.PoolClient> {
    const client = await pool.connect();
    connected = client;
    client.on("error", lose);
    return client;
  }

  function opened(): Promise<Opened> {
    opening ??= open().catch((error: unknown) => {
      release(true);
      throw error;
    });
    return opening;
  }

  async function open(): Promise<Opened> {
    const client = await connect();
    const begun = begin(client, bounds, [["lock_timeout", String(lockMs)]]);
    await answeredIn(client, bounds.commitMs, begun);
    const note = (error: unknown) => onBroken(classifyFault(error) === "contention");
    for (const statement of held.splice(0)) {
      requireSameText(client, statement);
      client.query(statement as pg.QueryConfig).catch(note);
    }
    return { client, savepoint: createSavepoint(client) };
  }

  function release(broken: boolean): void {
    over = true;
    released = true;
    connected?.off("error", lose);
    connected?.release(broken);
  }

  async function finish(end: () => Promise<unknown>): Promise<void> {
    if (released) throw new UkemiError("transaction_over", "The transaction was given up.");
    let broken = false;
    try {
      await end();
    } catch (error) {
      broken = !(error instanceof LeaseLost || isAnswered(error)); // otherwise it was rolled back, and can be used again
      throw error;
    } finally {
      if (!released) release(broken);
    }
  }

  async function commitAtOnce(last: readonly Statement[]): Promise<void> {
    const client = await connect();
    const all: Sendable[] = [lockTimeoutOf(lockMs), ...held, ...last];
    for (const statement of all) requireSameText(client, statement);
    await answeredIn(client, bounds.commitMs, bound(client, bounds));
    const learns = learnsNames(client, all);
    await answeredIn(client, bounds.commitMs, commitInOneTrip(client, all)).catch((error: unknown) => {
      heldUp ||= isAnswered(error) && classifyFault(error) === "contention";
      if (learns) release(true); // nobody knows which names it has
      throw error;
    });
  }

  return {
    next() {
      const isHeld = () => opening === undefined && !bounds.pooled;
      part = beginPart({ opened, bounds, onBroken, isHeld, hold: (parts) => void held.push(...parts) });
      return part;
    },
    commit: (last) =>
      finish(async () => {
        if (opening === undefined && !bounds.pooled) return commitAtOnce(last);
        const { client } = await opened();
        await answeredIn(client, bounds.commitMs, commit(client, last, bounds));
      }),
    async rollback() {
      if (connected === undefined) return void (released = over = true);
      const client = connected;
      await finish(() => answeredIn(client, bounds.commitMs, client.query("rollback"))).catch(() => {});
    },
    abandon() {
      if (released) return;
      if (connected) cut(connected);
      release(true);
    },
    isOver: () => over,
    isHeldUp: () => heldUp,
  };
}

/** A transaction that was begun. */
interface Opened {
  readonly client: pg.PoolClient;
  readonly savepoint: ReturnType<typeof createSavepoint>;
}

const lockTimeoutOf = (lockMs: number): Sendable => ({
  name: "ukemi lock timeout",
  text: "select set_config('lock_timeout', $1, true)",
  values: [String(lockMs)],
});

/** The savepoint of whoever's turn it is. What can go out in one message does: each is answered by a write. */
function createSavepoint(client: pg.ClientBase) {
  let state: "none" | "fresh" | "kept" = "none";
  const set = `savepoint ${SAVEPOINT}`;
  const release = `release savepoint ${SAVEPOINT}`;
  return {
    /** For the next handler. */
    async set(): Promise<void> {
      const before = state;
      state = "fresh";
      if (before !== "fresh") await client.query(before === "kept" ? `${release}; ${set}` : set);
    },
    /** Keeps what was written since; released with the next one, or by the commit. */
    keep: () => void (state = "kept"),
    /** The same, at once: fails where a statement has failed. */
    async release(): Promise<void> {
      state = "none";
      await client.query(release);
    },
    /** Undoes what was written since. */
    async undo(): Promise<void> {
      state = "fresh";
      await client.query(`rollback to savepoint ${SAVEPOINT}`);
    },
  };
}

/** A part, for the transaction that it belongs to. */
interface OwnedPart extends Part {
  /** The connection has failed while it was this one's turn. */
  noteLoss(error: unknown): void;
}

interface PartOptions {
  /** Begins the transaction, where that has not been done. */
  readonly opened: () => Promise<Opened>;
  readonly bounds: Bounds;
  /** A statement has failed that nobody waited for. */
  readonly onBroken: (isContention: boolean) => void;
  /** True while nothing was sent, and what nobody waits for is held back. */
  readonly isHeld: () => boolean;
  readonly hold: (statements: readonly Sendable[]) => void;
}

function beginPart({ opened, bounds, onBroken, isHeld, hold }: PartOptions): OwnedPart {
  const blame = createBlame();
  let isSound = true; // unless a statement of a handler before this one has failed, and nobody waited for it
  let entering: Promise<Opened> | undefined;
  const statements = createStatements({
    blame,
    async clientFor(text) {
      requirePlain(text);
      const { client } = await (entering ??= enter());
      return client;
    },
    onSendFailed: () => onBroken(blame.isContention()),
    mayHold: (text) => entering === undefined && isHeld() && isOfRows(text),
  });

  async function enter(): Promise<Opened> {
    const transaction = await opened();
    // not waited for: it goes out with what the handler sends first, and fails where that does
    sendTogether(transaction.client);
    transaction.savepoint.set().catch(() => (isSound = false));
    return transaction;
  }

  /** Keeps what nobody waited for: where it fails, the commit does. */
  function keepHeld(completion: Statement | undefined): void {
    statements.requireSound();
    hold(completion ? [...statements.held(), completion] : statements.held());
  }

  return {
    tx: statements.tx,
    async keep(completion) {
      statements.end("its handler has ended");
      if (entering === undefined && isHeld()) return keepHeld(completion);
      const { client, savepoint } = await (entering ??= enter());
      await statements.handedOver();
      statements.requireSound();
      // Where every statement went well, the release does too: the next handler begins without waiting for the answer. Where
      // one failed that nobody waited for, the commit fails.
      if (!completion && statements.allWentWell()) return savepoint.keep();
      sendTogether(client);
      const settled = completion && client.query(asQuery(completion, bounds.pooled));
      const answered = Promise.allSettled([settled, savepoint.release()]);
      const answers = await answeredIn(client, bounds.commitMs, answered);
      const failed = answers.find((answer) => answer.status === "rejected");
      if (failed) throw blame.note(whyNotSettled(failed.reason), { isLast: true });
    },
    fault() {
      if (!isSound) return "infrastructure";
      if (blame.isInfrastructure()) return "infrastructure";
      return blame.isContention() ? "contention" : "own";
    },
    async undo() {
      statements.end("its handler has ended");
      if (entering === undefined) return;
      const { client, savepoint } = await entering;
      await answeredIn(client, bounds.commitMs, savepoint.undo());
    },
    noteLoss: blame.noteLoss,
  };
}

/** What one handler sets or locks would hold for those after it, and end with the commit of all. */
function requirePlain(text: string): void {
  if (isPlain(text) && !text.includes(SAVEPOINT)) return;
  throw new UkemiError(
    "transaction_over",
    "A handler with sharedCommit can only read and write rows: one statement at a time, no settings, no advisory locks.",
  );
}
