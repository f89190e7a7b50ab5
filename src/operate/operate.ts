// What an operator does, the same for the command line, the API and code: every change has an actor, a reason and an audit.
import { createKeyring } from "../storage/keyring.ts";
import type { Pool } from "../storage/postgres.ts";
import type { LimitName } from "../storage/retention-limits.ts";
import type { RetentionLimits } from "../storage/retention.ts";
import { createBodies, type Bodies } from "./bodies.ts";
import { createDeadLetters, type DeadLetters } from "./dead.ts";
import { createDestinations, type Destinations } from "./destinations.ts";
import { createLedger, type Ledger } from "./effects.ts";
import { createEventReader, type EventReader } from "./events.ts";
import { createHandlers, type Handlers } from "./handlers.ts";
import {
  createAudit,
  createJobs,
  createRejections,
  createWorkers,
  type Audit,
  type Jobs,
  type Rejections,
  type Workers,
} from "./lists.ts";
import { createOperations, type Operations } from "./operations.ts";
import { createRead } from "./read.ts";
import { createQueues, type Queues } from "./queues.ts";
import { createStatistics, type Statistics } from "./statistics.ts";
import { createRetention, type Retention } from "./retention.ts";
import { createStoredEvents, type StoredEvents } from "./route.ts";
import { createSuppressions, type Suppressions } from "./suppressions.ts";
import { createTokens, type Tokens } from "./tokens.ts";

/** An operator's hands. */
export interface Operate {
  readonly events: EventReader & StoredEvents;
  readonly jobs: Jobs;
  readonly dead: DeadLetters;
  readonly effects: Ledger;
  readonly suppressions: Suppressions;
  readonly destinations: Destinations;
  readonly queues: Queues;
  readonly handlers: Handlers;
  readonly workers: Workers;
  readonly rejections: Rejections;
  readonly audit: Audit;
  readonly tokens: Tokens;
  readonly bodies: Bodies;
  readonly operations: Operations;
  readonly statistics: Statistics;
  readonly retention: Retention;
}

/** How the hands reach the store. */
export interface OperateOptions {
  /** The pool to work on; called before each act. */
  readonly open: () => Promise<Pool>;
  /** After so many milliseconds the server gives a read up. @default 5000 */
  readonly readTimeoutMs?: number;
  /** The option bodyKeys: what opens sealed bodies. @default none */
  readonly bodyKeys?: readonly string[];
  /** Called when an operation was made or resumed here: a process that runs operations begins at once. */
  readonly onOperation?: () => void;
  /** How long things are kept. Without it nothing is pruned. */
  readonly limits?: RetentionLimits;
  /** Limits that a person has named: they hold as they are, also where another process keeps longer. @default none */
  readonly namedLimits?: readonly LimitName[];
}

const READ_TIMEOUT_MS = 5000;

/** Makes an operator's hands. Nothing is opened until they are used. */
export function createOperate(options: OperateOptions): Operate {
  const { open, readTimeoutMs = READ_TIMEOUT_MS, bodyKeys, onOperation, limits, namedLimits } = options;
  const read = createRead(open, readTimeoutMs);
  const keyring = createKeyring(bodyKeys ?? []);
  const bodies = createBodies(open, read, { bodyKeys: bodyKeys ?? [], keyring });
  return {
    events: { ...createEventReader(read, bodies, keyring), ...createStoredEvents(open, read) },
    jobs: createJobs(read, keyring),
    dead: createDeadLetters(open, read, keyring),
    effects: createLedger(open, read, keyring),
    suppressions: createSuppressions(open, read, keyring),
    destinations: createDestinations(open, read),
    queues: createQueues(open, read),
    handlers: createHandlers(open, read),
    workers: createWorkers(read),
    rejections: createRejections(read),
    audit: createAudit(read),
    tokens: createTokens(open, read),
    bodies,
    operations: createOperations({ open, read, wake: onOperation }),
    statistics: createStatistics(read),
    retention: createRetention(open, read, { limits, named: namedLimits }),
  };
}
