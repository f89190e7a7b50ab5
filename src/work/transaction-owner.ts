// The contract for an ORM that opens the handler's transaction itself: our statements then run inside it.
import type { SqlClient } from "../storage/enqueue.ts";

/** What is done inside a transaction: the handler, then our completion of its job. */
export type Within<Tx> = (tx: Tx, client: SqlClient) => Promise<void>;

/**
 * Opens a transaction, runs the work in it once, and commits, or rolls back and rethrows the very error where the work throws.
 * - `client` runs plain SQL with `$1, $2, …` in that same transaction.
 * - An error of the server, from `client` or from COMMIT, has its SQLSTATE as `code`, as those of `pg` have; one without such
 *   a code means that the connection failed.
 * - Once it is over, `tx` and `client` refuse every statement: a handler that was stopped may still try.
 */
export interface TransactionOwner<Tx> {
  run(work: Within<Tx>, limits: { readonly timeLimitMs: number }): Promise<void>;
}
