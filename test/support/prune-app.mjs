// The pruner as its own process, for tests that kill it: prunes once, says what came of it, and ends.
import { createUkemi, stripe } from "../../dist/index.js";

const ukemi = createUkemi({
  database: process.env.DATABASE_URL,
  logLevel: "silent",
  sources: { stripe: stripe({ secrets: ["whsec_unused_0123456789"] }) },
});
const result = await ukemi.operate.retention.prune({ actor: "test:child", reason: "to be killed" });
process.stdout.write(`${JSON.stringify(result)}\n`);
await ukemi.stop();
