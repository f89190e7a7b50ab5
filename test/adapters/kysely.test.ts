// Kysely in the handler's transaction.
import { Kysely, PostgresDialect } from "kysely";
import type { HandlerTransaction } from "../../src/index.ts";
import { testAdapter } from "./conformance.ts";

interface Tables {
  payments: { id: string; status: string };
}

const open = (tx: HandlerTransaction) =>
  new Kysely<Tables>({ dialect: new PostgresDialect({ pool: tx.pool }) });

const insert = (db: Kysely<Tables>, id: string) =>
  db.insertInto("payments").values({ id, status: "paid" }).execute();

testAdapter<HandlerTransaction>(() => ({
  insert: (tx, id) => insert(open(tx), id),
  inner: (tx, work) =>
    open(tx)
      .transaction()
      .execute((inner) => work((id) => insert(inner, id))),
  sql: (tx) => tx,
}));
