// One Ukemi for the whole process: Next.js may load a module once for each route.
import { createUkemi, stripe, type Ukemi } from "ukemi";

const shared = globalThis as { ukemi?: Ukemi };

export const ukemi = (shared.ukemi ??= createUkemi({
  database: process.env.DATABASE_URL,
  sources: { stripe: stripe({ secrets: process.env.STRIPE_WEBHOOK_SECRET!.split(",") }) },
}));
