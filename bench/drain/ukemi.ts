// Ukemi as a user has it: built, with its logs and metrics on. The handler's UPDATE goes through its transaction; a handler
// that writes nothing costs no transaction of its own.
import type * as Index from "../../src/index.ts";
import { built } from "../built.ts";
import { answerDrain, HAS_EFFECT, noteHandled, openBenchPool } from "./drainer.ts";
import { countUnfinished, storeReadyEvents } from "./events.ts";
import { EFFECT, type DrainEvent } from "./job.ts";

const { createUkemi, stripe } = await built<typeof Index>("index.js");

const concurrency = Number(process.env.BENCH_CONCURRENCY);
/** False where handlers do not wait for the answer to their UPDATE. */
const WAITS = process.env.BENCH_SEND !== "on";
const pool = openBenchPool(1);

await answerDrain({
  store: (first, count) => storeReadyEvents(pool, first, count),
  unfinished: () => countUnfinished(pool),
  async work() {
    const ukemi = createUkemi({
      database: process.env.DATABASE_URL!,
      logLevel: process.env.BENCH_LOGS === "off" ? "silent" : "info",
      concurrency,
      ...(process.env.BENCH_CONNECTIONS
        ? { handlerConnectionsMax: Number(process.env.BENCH_CONNECTIONS) }
        : {}),
      sources: { stripe: stripe({ secrets: ["whsec_bench_0123456789abcdef0123456789abcdef"] }) },
    });
    ukemi.on(
      "stripe",
      "payment_intent.succeeded",
      async ({ event, tx }) => {
        const { account } = (event as unknown as DrainEvent).data.object;
        const effect = { name: "effect", text: EFFECT, values: [account] };
        if (HAS_EFFECT && WAITS) await tx.query(effect);
        else if (HAS_EFFECT) tx.send(effect);
        noteHandled();
      },
      { sharedCommit: process.env.BENCH_SHARED === "on" },
    );
    await ukemi.work();
    return () => ukemi.stop();
  },
  end: () => pool.end(),
});
