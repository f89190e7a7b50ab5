// Ukemi in Fastify 5.
import { fastify } from "fastify";
import { createUkemi, stripe } from "ukemi";

const ukemi = createUkemi({
  database: process.env.DATABASE_URL,
  sources: { stripe: stripe({ secrets: [process.env.STRIPE_WEBHOOK_SECRET!] }) },
});
await ukemi.start();

const app = fastify({ trustProxy: "loopback" }); // whose X-Forwarded-For makes request.ip

// A plugin has content type parsers of its own: here bodies stay unread, as a signature covers the raw bytes.
await app.register(async (webhooks) => {
  webhooks.removeAllContentTypeParsers();
  webhooks.addContentTypeParser("*", (_request, _payload, done) => done(null));

  webhooks.all("/webhooks/stripe", async (request, reply) => {
    reply.hijack(); // the receiver answers by itself
    await ukemi.nodeReceiver("stripe", { address: () => request.ip })(request.raw, reply.raw);
  });
});

app.post("/echo", async (request) => request.body);

app.addHook("onClose", () => ukemi.stop());
process.once("SIGTERM", () => void app.close());

const url = await app.listen({ host: "127.0.0.1", port: Number(process.env.PORT ?? 3000) });
console.log(`listening on ${url}`);
