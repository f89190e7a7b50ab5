// The end of a handler's transaction: completion and COMMIT go out together, and the answer says what became of them.
import type pg from "pg";
import { crashPoint } from "../crash-point.ts";
import { classifyFault, isAnswered } from "./faults.ts";
import { sendTogether } from "./postgres.ts";
import { LeaseLost, whyNotSettled, type Statement } from "./settle.ts";

/** The answer to a COMMIT was lost. */
export class CommitUnknown extends Error {
  override readonly name = "CommitUnknown";
}

/** A statement as it can be sent: a pooler's connection does not know the names that were given on another. */
export function asQuery({ name, ...statement }: Statement, pooled: boolean): pg.QueryConfig {
  return pooled ? statement : { name, ...statement };
}

/**
 * The last statements and COMMIT go out together. One that fails, as a completion does whose lease was lost, makes the server
 * roll back, so nothing has to be waited for in between.
 */
export async function commit(
  client: pg.ClientBase,
  last: readonly Statement[],
  { pooled }: { readonly pooled: boolean },
): Promise<void> {
  sendTogether(client);
  const sent = last.map((statement) => client.query(asQuery(statement, pooled)));
  crashPoint("work.before_commit");
  const [committed, ...settled] = await Promise.allSettled([client.query("commit"), ...sent]);
  const failed = settled.find((answer) => answer.status === "rejected");
  if (failed && isAnswered(failed.reason)) throw whyNotSettled(failed.reason);
  if (committed.status === "rejected") {
    // a refusal (a deferred constraint) is an answer; anything else may have been committed
    if (classifyFault(committed.reason) !== "infrastructure") throw committed.reason;
    throw new CommitUnknown("the answer to COMMIT was lost", { cause: committed.reason });
  }
  if (committed.value.command !== "COMMIT") throw new Error("the transaction was rolled back by the server");
  // never seen: a completion that was not sent. What was committed without it must not be done again
  if (failed) throw new LeaseLost();
}
