// Completions of handlers that wrote nothing through their transaction: those that come together share one statement.
import { LeaseLost, type Completion } from "../storage/settle.ts";

export interface Completions {
  /** Resolves when the job is settled; rejects with LeaseLost, or with the database's error. */
  add(completion: Completion): Promise<void>;
}

interface Waiting extends Completion {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const BATCH_MAX = 500;

/** While one statement waits for the disk, another gets ready. */
const LANES = 2;

/** `settle` returns the ids of those that were not ours any more. */
export function createCompletions(
  settle: (completions: readonly Completion[]) => Promise<ReadonlySet<string>>,
): Completions {
  let waiting: Waiting[] = [];
  let lanes = 0;

  async function settleAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH_MAX);
      waiting = waiting.slice(BATCH_MAX);
      try {
        const lost = await settle(batch);
        for (const { job, resolve, reject } of batch) {
          if (lost.has(job.id)) reject(new LeaseLost());
          else resolve();
        }
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    lanes -= 1;
  }

  return {
    add(completion) {
      return new Promise((resolve, reject) => {
        waiting.push({ ...completion, resolve, reject });
        // those that end in the same turn of the event loop go together
        if (lanes === LANES) return;
        lanes += 1;
        setImmediate(() => void settleAll());
      });
    },
  };
}
