// Knex in the handler's transaction.
import knex from "knex";
import type { HandlerTransaction } from "../../src/index.ts";
import { testAdapter } from "./conformance.ts";

const db = knex({ client: "pg" }); // without a connection of its own

testAdapter<HandlerTransaction>(() => ({
  insert: (tx, id) => db("payments").connection(tx.client).insert({ id, status: "paid" }),
  inner: (tx, work) =>
    db.transaction((inner) => work((id) => inner("payments").insert({ id, status: "paid" })), {
      connection: tx.client,
    }),
  sql: (tx) => tx,
}));
