// Queues in an operator's hands: hold one up while a cause is mended, and let it go on.
import { UkemiError } from "../errors.ts";
import type { Pool } from "../storage/postgres.ts";
import { changeQueue, listQueues, readQueueNames, type ListedQueue } from "../storage/queues.ts";
import { INLINE } from "../work/handler.ts";
import { inTransaction } from "./transaction.ts";
import type { Read } from "./read.ts";
import { readMandate, readText, type Mandate } from "./mandate.ts";

/** What a change of a queue did. */
export interface QueueResult {
  readonly name: string;
  readonly paused: boolean;
  /** False where it was so before. */
  readonly changed: boolean;
}

/** What can be done with queues. */
export interface Queues {
  list(): Promise<readonly ListedQueue[]>;
  /** No worker claims its jobs from the commit on; those that run go on to their end. Events are still received. */
  pause(name: string, mandate: Mandate): Promise<QueueResult>;
  resume(name: string, mandate: Mandate): Promise<QueueResult>;
}

const NAME_MAX = 100;

export function createQueues(open: () => Promise<Pool>, read: Read): Queues {
  async function check(given: string, paused: boolean): Promise<string> {
    const name = readText("name", given, NAME_MAX);
    // it would look paused, and its handlers would run all the same
    if (paused && name === INLINE) throw inlineRuns();
    const known = await read(readQueueNames);
    if (!known.includes(name)) throw noQueue(name, known);
    return name;
  }
  async function change(given: string, paused: boolean, mandate: Mandate): Promise<QueueResult> {
    const by = readMandate(mandate);
    const name = await check(given, paused);
    const changed = await inTransaction(await open(), (client) =>
      changeQueue(client, { name, paused, ...by }),
    );
    return { name, paused, changed };
  }
  return {
    list: () => read(listQueues),
    pause: (name, mandate) => change(name, true, mandate),
    resume: (name, mandate) => change(name, false, mandate),
  };
}

/** Why the queue that runs before the answer cannot be held up. */
export function inlineRuns(): UkemiError {
  return new UkemiError(
    "invalid_parameter",
    `The queue ${INLINE} cannot be paused: its handlers run before the sender is answered.`,
  );
}

/** A mistyped name would look paused, and nothing would have stopped. */
function noQueue(name: string, known: readonly string[]): UkemiError {
  const names = known.filter((item) => item !== INLINE);
  const there =
    names.length === 0
      ? "there are none yet"
      : `there ${names.length === 1 ? "is" : "are"} ${names.join(", ")}`;
  return new UkemiError("not_found", `There is no queue ${JSON.stringify(name)}: ${there}.`);
}
