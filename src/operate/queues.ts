// Queues in an operator's hands: hold one up while a cause is mended, and let it go on.
import type { Pool } from "../storage/postgres.ts";
import { changeQueue, listQueues, type ListedQueue } from "../storage/queues.ts";
import { inTransaction } from "./batches.ts";
import type { Read } from "./dead.ts";
import { INLINE } from "../work/handler.ts";
import { readMandate, readText, wrong, type Mandate } from "./mandate.ts";

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
  async function change(given: string, paused: boolean, mandate: Mandate): Promise<QueueResult> {
    const by = readMandate(mandate);
    const name = readText("name", given, NAME_MAX);
    if (paused && name === INLINE) {
      throw wrong(
        "name",
        `must not be ${INLINE}: those handlers run before the sender is answered, and cannot wait`,
      );
    }
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
