// Reads of an operator: each with a limit of time, or within the transaction that surrounds it.
import { readWithin, type Pool, type Queryable } from "../storage/postgres.ts";
import { surroundingClient } from "./transaction.ts";

/** Runs a read. */
export type Read = <T>(work: (client: Queryable) => Promise<T>) => Promise<T>;

/** After so many milliseconds the server gives a read up. */
export function createRead(open: () => Promise<Pool>, timeoutMs: number): Read {
  return async (work) => {
    const surrounding = surroundingClient();
    return surrounding ? work(surrounding) : readWithin(await open(), timeoutMs, work);
  };
}
