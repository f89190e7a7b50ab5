// Whose fault it is that a handler's transaction failed: the database's, which burns no attempt, or the handler's own.
import { UkemiError } from "../errors.ts";
import { classifyFault, sqlState } from "./faults.ts";

export interface Blame {
  /** Takes note of an error; returns the one to tell, which is the cause where this one is only its echo. */
  note(error: unknown, options?: { readonly isLast: boolean }): unknown;
  /** The connection itself has failed. */
  noteLoss(error: unknown): void;
  connectionLost(): void;
  /** The database did not answer in time. */
  noteSilence(): void;
  /** True where the database, not the handler, is to blame. */
  isInfrastructure(): boolean;
  /** True where a lock or a conflict with another transaction made it fail. */
  isContention(): boolean;
}

/** The SQLSTATE of every statement in a transaction that has failed. */
const ABORTED = "25P02";

/** The SQLSTATE with which the server ends a transaction in which nothing happened for too long. */
const IDLE = "25P03";

export function createBlame(): Blame {
  let infrastructure = false;
  let contention = false;
  let gone = false; // the connection
  let idle: unknown; // the server ended the connection because the handler left it idle: its own doing
  let failed: unknown; // what made the transaction fail: later statements only say that it did

  function take(error: unknown): void {
    if (sqlState(error) === IDLE) idle ??= error;
    if (idle !== undefined || error instanceof UkemiError) return;
    // on a sound connection, an error that the server did not send is about how the handler called `query`
    const isSent = gone || sqlState(error) !== undefined;
    infrastructure ||= isSent && classifyFault(error) === "infrastructure";
    contention ||= isSent && classifyFault(error) === "contention";
    if (sqlState(error) !== ABORTED) failed = error;
  }

  return {
    note(error, { isLast } = { isLast: false }) {
      // a handler that caught a failed statement, or lost the connection, learns of it only at the end: tell the cause
      const isEcho = isLast && (sqlState(error) === ABORTED || (gone && sqlState(error) === undefined));
      const cause = isEcho ? failed : undefined;
      take(error);
      return idle ?? cause ?? error;
    },
    noteLoss(error) {
      gone = true;
      take(error);
    },
    connectionLost: () => void (gone = true),
    noteSilence: () => void (infrastructure = true),
    isInfrastructure: () => infrastructure,
    isContention: () => contention,
  };
}
