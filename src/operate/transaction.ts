// The transactions of an operator's acts. Acts that run within another join it, and what follows a commit waits for its.
import { AsyncLocalStorage } from "node:async_hooks";
import { sleep } from "../clock.ts";
import { UkemiError } from "../errors.ts";
import { classifyFault } from "../storage/faults.ts";
import { transaction, type Pool, type Queryable } from "../storage/postgres.ts";

interface Surrounding {
  readonly client: Queryable;
  readonly follows: (() => Promise<void>)[];
}

const storage = new AsyncLocalStorage<Surrounding>();

const TRIES = 5;
/** A request waits for its like for some seconds. */
const SURROUNDING_TRIES = 12;
const PAUSE_MS = 50;

/** The transaction that surrounds this call, if there is one. */
export const surroundingClient = (): Queryable | undefined => storage.getStore()?.client;

/** Runs the work in one transaction, or in the one that surrounds it; one that met another's lock is tried again. */
export async function inTransaction<T>(
  pool: Pool,
  work: (client: Queryable) => Promise<T>,
  mostTries = TRIES,
): Promise<T> {
  const surrounding = surroundingClient();
  if (surrounding) return work(surrounding);
  for (let tries = 1; ; tries++) {
    try {
      return await transaction(pool, work);
    } catch (error) {
      if (classifyFault(error) !== "contention") throw error;
      if (tries === mostTries) throw new UkemiError("contended", undefined, { cause: error });
      await sleep(PAUSE_MS * tries);
    }
  }
}

/** Runs the follow-up now, or after the commit of the transaction that surrounds it. */
export async function afterCommit(follow: () => Promise<void>): Promise<void> {
  const surrounding = storage.getStore();
  if (surrounding) surrounding.follows.push(follow);
  else await follow();
}

/** Surrounds the work with one transaction that every act in it joins. */
export async function surround<T>(pool: Pool, work: (client: Queryable) => Promise<T>): Promise<T> {
  let follows: (() => Promise<void>)[] = [];
  const begin = (client: Queryable) => {
    follows = []; // what a try that was rolled back would have done afterwards is not done
    return storage.run({ client, follows }, () => work(client));
  };
  const result = await inTransaction(pool, begin, SURROUNDING_TRIES);
  for (const follow of follows) await follow();
  return result;
}
