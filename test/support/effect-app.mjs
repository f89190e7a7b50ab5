// A worker whose handler intends a mail, two HTTP calls and a record of use for each event, as its own process: tests kill it.
import { createUkemi, stripe } from "../../dist/index.js";

const { DATABASE_URL, PEER_URL, EFFECT_SECRET, EFFECT_OPTIONS = "{}" } = process.env;

const ukemi = createUkemi({
  database: DATABASE_URL,
  pollMs: 50,
  leaseMs: 3000,
  mailGapMs: 0,
  mailPerSecond: 1000,
  http: { allow: [PEER_URL], tries: 10 },
  ...JSON.parse(EFFECT_OPTIONS),
  sources: { stripe: stripe({ secrets: [EFFECT_SECRET] }) },
});

ukemi.on("stripe", "payment_intent.succeeded", async ({ event, effects }) => {
  const id = String(event.id);
  await effects.email("receipt", {
    to: `${id}@example.net`,
    data: { number: id, name: "Taro", amount: 100 },
    dedupe: id,
  });
  await effects.http({ url: `${PEER_URL}/keyed`, body: { id }, idempotent: true, dedupe: `keyed ${id}` });
  await effects.http({ url: `${PEER_URL}/blind`, body: { id }, dedupe: `blind ${id}` });
  await effects.usage({ source_event_id: id, amount: 3 });
});

process.once("SIGTERM", () => void ukemi.stop().then(() => process.exit(0)));
await ukemi.work();
