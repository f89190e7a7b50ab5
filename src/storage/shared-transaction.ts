// A transaction that several handlers share, one after another, with one commit. Where none of them waits for a statement, it is
// one trip.
import type pg from "pg";
import { UkemiError } from "../errors.ts";
import { begin, bound, isBound, type Bounds } from "./begin.ts";
import { commit } from "./commit.ts";
import { classifyFault, isAnswered } from "./faults.ts";
import { requireSameText } from "./handler-statements.ts";
import { commitInOneTrip, learnsNames, type Sendable } from "./one-trip.ts";
import { answeredIn, cut, type Pool } from "./postgres.ts";
import { LeaseLost, type Statement } from "./settle.ts";
import { beginPart, createSavepoint, type Opened, type OwnedPart, type Part } from "./shared-part.ts";

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

/** No statement waits for a lock for longer than `lockMs`. Nothing is opened before somebody waits for an answer, or the commit. */
export function createShared(pool: Pool, bounds: Bounds, lockMs: number): SharedTransaction {
  let connected: pg.PoolClient | undefined;
  let opening: Promise<Opened> | undefined;
  let isOpen = false;
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
    const client = await pool.connect().catch((error: unknown) => {
      part?.noteLoss(error);
      throw error;
    });
    if (released) {
      client.release();
      throw givenUp();
    }
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
    isOpen = true;
    const note = (error: unknown) => onBroken(classifyFault(error) === "contention");
    for (const statement of held.splice(0)) {
      requireSameTextOfOthers(client, statement);
      client.query(statement as pg.QueryConfig).catch(note);
    }
    return { client, savepoint: createSavepoint(client) };
  }

  /** It is of those before, and fails for them when each is tried alone. */
  function requireSameTextOfOthers(client: pg.PoolClient, statement: Sendable): void {
    try {
      requireSameText(client, statement);
    } catch (error) {
      part?.noteSilence();
      throw error;
    }
  }

  function release(broken: boolean): void {
    over = true;
    part?.end();
    if (released) return;
    released = true;
    connected?.off("error", lose);
    connected?.release(broken);
  }

  async function finish(end: () => Promise<unknown>): Promise<void> {
    if (released) throw givenUp();
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
    if (!isBound(client, bounds)) await answeredIn(client, bounds.commitMs, bound(client, bounds));
    const learns = learnsNames(client, all);
    const withinMs = bounds.commitMs + (held.length > 0 ? bounds.statementMs : 0);
    await answeredIn(client, withinMs, commitInOneTrip(client, all)).catch((error: unknown) => {
      heldUp ||= isAnswered(error) && classifyFault(error) === "contention";
      if (learns) release(true); // nobody knows which names it has
      throw error;
    });
  }

  return {
    next() {
      const isHeld = () => opening === undefined && bounds.oneTrip;
      part = beginPart({ opened, bounds, onBroken, isHeld, hold: (parts) => void held.push(...parts) });
      return part;
    },
    commit: (last) =>
      finish(async () => {
        if (opening === undefined && bounds.oneTrip) return commitAtOnce(last);
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
      if (opening !== undefined && !isOpen) part?.noteSilence(); // it never had its time
      if (connected) cut(connected);
      release(true);
    },
    isOver: () => over,
    isHeldUp: () => heldUp,
  };
}

const givenUp = () => new UkemiError("transaction_over", "The transaction was given up.");

const lockTimeoutOf = (lockMs: number): Sendable => ({
  name: "ukemi lock timeout",
  text: "select set_config('lock_timeout', $1, true)",
  values: [String(lockMs)],
});
