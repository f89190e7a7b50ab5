// Ukemi in Express 5.
import type { AddressInfo } from "node:net";
import express, { type Request } from "express";
import { createUkemi, stripe } from "ukemi";

const ukemi = createUkemi({
  database: process.env.DATABASE_URL,
  sources: { stripe: stripe({ secrets: [process.env.STRIPE_WEBHOOK_SECRET!] }) },
});
await ukemi.start();

const app = express();
app.set("trust proxy", "loopback"); // whose X-Forwarded-For makes request.ip

// Before express.json(): a signature covers the raw bytes, and a body can be read only once.
app.all("/webhooks/stripe", ukemi.nodeReceiver("stripe", { address: (request: Request) => request.ip }));

app.use(express.json());
app.post("/echo", (request, response) => void response.json(request.body));

const server = app.listen(Number(process.env.PORT ?? 3000), () =>
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`),
);

process.once("SIGTERM", () => server.close(() => void ukemi.stop()));
