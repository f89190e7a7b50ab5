// Plain `pg`: in the handler's transaction, and as one that opens the transaction itself.
import { describe, onTestFinished } from "vitest";
import type { HandlerTransaction, SqlClient, TransactionOwner } from "../../src/index.ts";
import { openPool, type Pool } from "../../src/storage/postgres.ts";
import { testAdapter } from "./conformance.ts";

const INSERT = "insert into payments values ($1, 'paid')";

describe("the handler's transaction", () => {
  testAdapter<HandlerTransaction>(() => ({
    insert: (tx, id) => tx.query(INSERT, [id]),
    async inner(tx, work) {
      await tx.query("begin");
      try {
        await work((id) => tx.query(INSERT, [id]));
        await tx.query("commit");
      } catch (error) {
        await tx.query("rollback");
        throw error;
      }
    },
    sql: (tx) => tx,
  }));
});

describe("a transaction of the application's own", () => {
  testAdapter<SqlClient>((url) => {
    const pool = openPool(url);
    onTestFinished(() => pool.end());
    return {
      transaction: pgTransaction(pool),
      insert: (tx, id) => tx.query(INSERT, [id]),
      async inner(tx, work) {
        await tx.query("savepoint inner_one", []);
        try {
          await work((id) => tx.query(INSERT, [id]));
        } catch (error) {
          await tx.query("rollback to savepoint inner_one", []);
          throw error;
        }
      },
      sql: (tx) => tx,
    };
  });
});

function pgTransaction(pool: Pool): TransactionOwner<SqlClient> {
  return {
    async run(work) {
      const client = await pool.connect();
      let isOver = false;
      let isBroken = false;
      const lose = () => (isBroken = true);
      const tx: SqlClient = {
        async query(text, values) {
          if (isOver) throw new Error("the transaction is over");
          return client.query(text, values);
        },
      };
      client.on("error", lose);
      try {
        await client.query("begin");
        await work(tx, tx);
        isOver = true;
        await client.query("commit");
      } catch (error) {
        isOver = true; // the connection goes back to the pool, and a handler may go on for a while
        await client.query("rollback").catch(lose);
        throw error;
      } finally {
        client.off("error", lose);
        client.release(isBroken);
      }
    },
  };
}
