// Drizzle in a handler's transaction.
import { drizzle } from "drizzle-orm/node-postgres";
import { pgTable, text } from "drizzle-orm/pg-core";
import { createUkemi, stripe } from "ukemi";

const payments = pgTable("payments", { id: text().primaryKey(), status: text().notNull() });

const ukemi = createUkemi({
  database: process.env.DATABASE_URL,
  sources: { stripe: stripe({ secrets: [process.env.STRIPE_WEBHOOK_SECRET!] }) },
});

ukemi.on("stripe", "payment_intent.succeeded", async ({ event, tx }) => {
  const db = drizzle({ client: tx.client });
  await db.insert(payments).values({ id: event.data.object.id, status: "paid" });
});

await ukemi.work();
process.once("SIGTERM", () => void ukemi.stop());
