// What an operator does, the same for the command line, the API and code: every change has an actor, a reason and an audit.
import { readWithin, type Pool } from "../storage/postgres.ts";
import { createDeadLetters, type DeadLetters, type Read } from "./dead.ts";
import { createHandlers, type Handlers } from "./handlers.ts";
import { createQueues, type Queues } from "./queues.ts";
import { createStatistics, type Statistics } from "./statistics.ts";
import { createStoredEvents, type StoredEvents } from "./route.ts";

/** An operator's hands. */
export interface Operate {
  readonly dead: DeadLetters;
  readonly events: StoredEvents;
  readonly queues: Queues;
  readonly handlers: Handlers;
  readonly statistics: Statistics;
}

/** How the hands reach the store. */
export interface OperateOptions {
  /** The pool to work on; called before each act. */
  readonly open: () => Promise<Pool>;
  /** After so many milliseconds the server gives a read up. @default 5000 */
  readonly readTimeoutMs?: number;
}

const READ_TIMEOUT_MS = 5000;

/** Makes an operator's hands. Nothing is opened until they are used. */
export function createOperate({ open, readTimeoutMs = READ_TIMEOUT_MS }: OperateOptions): Operate {
  const read: Read = async (work) => readWithin(await open(), readTimeoutMs, work);
  return {
    dead: createDeadLetters(open, read),
    events: createStoredEvents(open, read),
    queues: createQueues(open, read),
    handlers: createHandlers(open, read),
    statistics: createStatistics(read),
  };
}
