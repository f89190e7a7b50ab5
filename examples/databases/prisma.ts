// Prisma, which opens the handler's transaction itself.
import { PrismaPg } from "@prisma/adapter-pg";
import { createUkemi, stripe } from "ukemi";
import { prismaTransaction } from "ukemi/prisma";
import { PrismaClient } from "./prisma/generated/client.ts";

const adapter = new PrismaPg({ connectionString: process.env.DATABASE_URL! });
const prisma = new PrismaClient({ adapter });

const ukemi = createUkemi({
  database: process.env.DATABASE_URL,
  sources: { stripe: stripe({ secrets: [process.env.STRIPE_WEBHOOK_SECRET!] }) },
});

ukemi.on(
  "stripe",
  "payment_intent.succeeded",
  async ({ event, tx }) => {
    await tx.payment.create({ data: { id: event.data.object.id, status: "paid" } });
  },
  { transaction: prismaTransaction(prisma) },
);

await ukemi.work();
process.once("SIGTERM", () => void ukemi.stop().then(() => prisma.$disconnect()));
