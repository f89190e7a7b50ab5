// The contract for an ORM that opens the handler's transaction itself: our statements then run inside it.
import type { SqlClient } from "../storage/enqueue.ts";

/** What is done inside a transaction: the handler, then our completion of its job. */
export type Within<Tx> = (tx: Tx, client: SqlClient) => Promise<void>;

/**
 * Opens a transaction, runs the work in it, and commits, or rolls back and rethrows where the work throws.
 * `client` runs plain SQL with `$1, $2, …` in that same transaction.
 */
export interface TransactionOwner<Tx> {
  run(work: Within<Tx>, limits: { readonly timeLimitMs: number }): Promise<void>;
}
