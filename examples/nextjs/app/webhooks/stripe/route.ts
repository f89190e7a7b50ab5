// Ukemi in Next.js: a route handler of the app router.
import { createUkemi, stripe, type Ukemi } from "ukemi";

export const runtime = "nodejs";

// One for the process, though Next.js may load this file again; and not before the first request: a build has no secrets.
const shared = globalThis as { ukemi?: Ukemi };

export function POST(request: Request): Promise<Response> {
  shared.ukemi ??= createUkemi({
    database: process.env.DATABASE_URL,
    sources: { stripe: stripe({ secrets: [process.env.STRIPE_WEBHOOK_SECRET!] }) },
  });
  return shared.ukemi.receiver("stripe", { address: lastHop })(request);
}

// What the proxy in front of Next.js wrote. Without such a proxy leave this out: callers can write it themselves.
function lastHop(request: Request): string | undefined {
  return request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim();
}
