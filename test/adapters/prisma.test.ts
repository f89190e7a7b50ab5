// Prisma, which opens the handler's transaction itself.
import { PrismaPg } from "@prisma/adapter-pg";
import { onTestFinished } from "vitest";
import { PrismaClient, type Prisma } from "../../examples/databases/prisma/generated/client.ts";
import { prismaSql, prismaTransaction } from "../../src/work/prisma.ts";
import { testAdapter } from "./conformance.ts";

testAdapter<Prisma.TransactionClient>((url) => {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
  onTestFinished(() => prisma.$disconnect());
  return {
    transaction: prismaTransaction(prisma),
    insert: (tx, id) => tx.payment.create({ data: { id, status: "paid" } }),
    inner: (tx, work) =>
      tx.$transaction((inner) => work((id) => inner.payment.create({ data: { id, status: "paid" } }))),
    sql: prismaSql,
  };
});
