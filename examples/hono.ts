// Ukemi in Hono, on Node.
import { serve } from "@hono/node-server";
import { getConnInfo } from "@hono/node-server/conninfo";
import { Hono } from "hono";
import { createUkemi, stripe } from "ukemi";

const ukemi = createUkemi({
  database: process.env.DATABASE_URL,
  sources: { stripe: stripe({ secrets: [process.env.STRIPE_WEBHOOK_SECRET!] }) },
});
await ukemi.start();

const app = new Hono();

app.all("/webhooks/stripe", (context) => {
  // a Request does not know its sender; behind a proxy, read the header that the proxy writes
  const receive = ukemi.receiver("stripe", { address: () => getConnInfo(context).remote.address });
  return receive(context.req.raw);
});

const server = serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) }, ({ port }) =>
  console.log(`listening on http://127.0.0.1:${port}`),
);

process.once("SIGTERM", () => server.close(() => void ukemi.stop()));
