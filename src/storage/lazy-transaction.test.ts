import { expect, test } from "vitest";
import { UkemiError } from "../errors.ts";
import type { OpenableTransaction } from "./handler-transaction.ts";
import { createLazyTransaction } from "./lazy-transaction.ts";

/** Counts how often one is made, and what is asked of it. */
function lazily() {
  const asked: string[] = [];
  let over: string | undefined;
  const ask = (what: string) => {
    if (over !== undefined) throw new UkemiError("transaction_over", over);
    asked.push(what);
  };
  const end = (why: string) => void (over ??= why);
  const transaction = createLazyTransaction(() => {
    asked.push("made");
    return {
      tx: {
        query: (text: string) => Promise.resolve(ask(text)),
        send: ask,
        client: "a client",
        pool: "a pool",
      },
      used: () => true,
      lostToInfrastructure: () => false,
      mark: () => "7/token",
      commit: () => Promise.resolve(ask("commit")),
      rollback: () => Promise.resolve(end("rolled back")),
      close: () => end("closed"),
      abandon: () => end("abandoned"),
    } as unknown as OpenableTransaction;
  });
  return { transaction, asked };
}

test("nothing is made of one that nobody uses, however it ends", async () => {
  const { transaction, asked } = lazily();
  expect([transaction.used(), transaction.lostToInfrastructure(), transaction.mark()]).toEqual([
    false,
    false,
    null,
  ]);
  transaction.abandon();
  await transaction.rollback();
  transaction.close();
  expect(asked).toEqual([]);
});

test("it is made once, by whatever uses it first", async () => {
  const { transaction, asked } = lazily();
  const { query, send } = transaction.tx;
  await query("first");
  send("second");
  expect([transaction.tx.client, transaction.tx.pool]).toEqual(["a client", "a pool"]);
  expect([transaction.used(), transaction.mark()]).toEqual([true, "7/token"]);
  await transaction.commit([]);
  expect(asked).toEqual(["made", "first", "second", "commit"]);
  const { transaction: other, asked: ofOther } = lazily();
  await other.commit([]);
  expect(ofOther).toEqual(["made", "commit"]);
});

test("who first uses it behind its end is told how it ended", async () => {
  const { transaction, asked } = lazily();
  transaction.abandon();
  await transaction.rollback();
  expect(() => transaction.tx.send("late")).toThrow("abandoned");
  expect(asked).toEqual(["made"]);
});
