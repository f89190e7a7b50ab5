// Knex in a handler's transaction.
import knex from "knex";
import { createUkemi, stripe } from "ukemi";

const db = knex({ client: "pg" }); // one for all handlers: each lends it the connection of its transaction

const ukemi = createUkemi({
  database: process.env.DATABASE_URL,
  sources: { stripe: stripe({ secrets: [process.env.STRIPE_WEBHOOK_SECRET!] }) },
});

ukemi.on("stripe", "payment_intent.succeeded", async ({ event, tx }) => {
  await db("payments").connection(tx.client).insert({ id: event.data.object.id, status: "paid" });
});

await ukemi.work();
process.once("SIGTERM", () => void ukemi.stop());
