// Drizzle in the handler's transaction.
import { drizzle } from "drizzle-orm/node-postgres";
import { pgTable, text } from "drizzle-orm/pg-core";
import type { HandlerTransaction } from "../../src/index.ts";
import { testAdapter } from "./conformance.ts";

const payments = pgTable("payments", { id: text().primaryKey(), status: text().notNull() });

testAdapter<HandlerTransaction>(() => ({
  insert: (tx, id) => drizzle({ client: tx.client }).insert(payments).values({ id, status: "paid" }),
  inner: (tx, work) =>
    drizzle({ client: tx.client }).transaction((inner) =>
      work((id) => inner.insert(payments).values({ id, status: "paid" })),
    ),
  sql: (tx) => tx,
}));
