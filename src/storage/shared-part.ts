// What one handler does in a transaction that it shares: between a savepoint and its release; or, as long as nobody has waited
// for a statement, held back for the commit.
import type pg from "pg";
import { UkemiError } from "../errors.ts";
import { isOfRows, isPlain, type Bounds } from "./begin.ts";
import { createBlame } from "./blame.ts";
import { asQuery } from "./commit.ts";
import { createStatements, type HandlerTransaction } from "./handler-statements.ts";
import type { Sendable } from "./one-trip.ts";
import { answeredIn, sendTogether } from "./postgres.ts";
import { whyNotSettled, type Statement } from "./settle.ts";

/** What one handler does in the transaction. */
export interface Part {
  readonly tx: HandlerTransaction;
  /** Keeps what was written, once the statement that completes the job, where there is one, has been answered. */
  keep(completion?: Statement): Promise<void>;
  /** Undoes what was written. Rejects where the connection is lost. */
  undo(): Promise<void>;
  /** Whose fault a failure is: the handler's own, the database's, or that of others who hold what it needs. */
  fault(): "own" | "infrastructure" | "contention";
}

/** A transaction that was begun. */
export interface Opened {
  readonly client: pg.PoolClient;
  readonly savepoint: ReturnType<typeof createSavepoint>;
}

const SAVEPOINT = "ukemi_part";

/** The savepoint of whoever's turn it is. What can go out in one message does: each is answered by a write. */
export function createSavepoint(client: pg.ClientBase) {
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
export interface OwnedPart extends Part {
  /** The connection has failed, or could not be had, while it was this one's turn. */
  noteLoss(error: unknown): void;
  /** The database has not answered in time, or somebody else has made the transaction fail. */
  noteSilence(): void;
  /** Refuses every further statement: the connection is somebody else's now. */
  end(): void;
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

export function beginPart({ opened, bounds, onBroken, isHeld, hold }: PartOptions): OwnedPart {
  const blame = createBlame();
  let isSound = true; // unless a statement of a handler before this one has failed, and nobody waited for it
  let entering: Promise<Opened> | undefined;
  const statements = createStatements({
    blame,
    async clientFor(text) {
      requireShareable(text);
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
    noteSilence: blame.noteSilence,
    end: () => statements.end("its transaction has ended"),
  };
}

/** What one handler sets or locks would hold for those after it, and end with the commit of all. */
export function requireShareable(text: string): void {
  if (isPlain(text) && !text.includes(SAVEPOINT)) return;
  throw new UkemiError(
    "transaction_over",
    "A handler with sharedCommit can only read and write rows: one statement at a time, no settings, no advisory locks.",
  );
}
