// What an operator does, the same for the command line, the API and code: every change has an actor, a reason and an audit.
import { readWithin, type Pool } from "../storage/postgres.ts";
import { createDeadLetters, type DeadLetters, type Read } from "./dead.ts";
import { createHandlers, type Handlers } from "./handlers.ts";
import type { RetentionLimits } from "../storage/retention.ts";
import { createQueues, type Queues } from "./queues.ts";
import { createRetention, type Retention } from "./retention.ts";
import { createStoredEvents, type StoredEvents } from "./route.ts";

/** An operator's hands. */
export interface Operate {
  readonly dead: DeadLetters;
  readonly events: StoredEvents;
  readonly queues: Queues;
  readonly handlers: Handlers;
  readonly retention: Retention;
}

/** How the hands reach the store. */
export interface OperateOptions {
  /** The pool to work on; called before each act. */
  readonly open: () => Promise<Pool>;
  /** After so many milliseconds the server gives a read up. @default 5000 */
  readonly readTimeoutMs?: number;
  /** How long things are kept. Without it nothing is pruned. */
  readonly limits?: RetentionLimits;
}

const READ_TIMEOUT_MS = 5000;

/** Makes an operator's hands. Nothing is opened until they are used. */
export function createOperate({ open, readTimeoutMs = READ_TIMEOUT_MS, limits }: OperateOptions): Operate {
  const read: Read = async (work) => readWithin(await open(), readTimeoutMs, work);
  return {
    dead: createDeadLetters(open, read),
    events: createStoredEvents(open, read),
    queues: createQueues(open, read),
    handlers: createHandlers(open, read),
    retention: createRetention(open, read, limits),
  };
}
