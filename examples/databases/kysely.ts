// Kysely in a handler's transaction.
import { Kysely, PostgresDialect } from "kysely";
import { createUkemi, stripe } from "ukemi";

interface Tables {
  payments: { id: string; status: string };
}

const ukemi = createUkemi({
  database: process.env.DATABASE_URL,
  sources: { stripe: stripe({ secrets: [process.env.STRIPE_WEBHOOK_SECRET!] }) },
});

ukemi.on("stripe", "payment_intent.succeeded", async ({ event, tx }) => {
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: tx.pool }) });
  await db.insertInto("payments").values({ id: event.data.object.id, status: "paid" }).execute();
});

await ukemi.work();
process.once("SIGTERM", () => void ukemi.stop());
