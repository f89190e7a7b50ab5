// Ukemi: a signed delivery goes through its fetch-style receiver. With BENCH_WORKER=other the handler runs in another process,
// else in this one, where jobs are inserted as claimed.
import type * as Index from "../../src/index.ts";
import { built } from "../built.ts";
import { startProgram } from "../programs.ts";
import { deliveryOf, SECRET } from "./delivery.ts";
import { answerLatency, createStarts } from "./samples.ts";

const { createUkemi, stripe } = await built<typeof Index>("index.js");

const inOther = process.env.BENCH_WORKER === "other";

const starts = createStarts();
const ukemi = createUkemi({
  database: process.env.DATABASE_URL!,
  sources: { stripe: stripe({ secrets: [SECRET] }) },
});
ukemi.on("stripe", "payment_intent.succeeded", starts.note);
await ukemi.start();
const worker = inOther
  ? await startProgram("./latency/ukemi-worker.ts", { node: process.execPath })
  : await ukemi.work().then(() => undefined);
const receive = ukemi.receiver("stripe");

answerLatency({
  prepare(number) {
    const request = new Request("http://127.0.0.1/webhooks/stripe", {
      method: "POST",
      ...deliveryOf(number),
    });
    return async () => {
      const { status } = await receive(request);
      if (status !== 204) throw new Error(`the delivery was answered with ${status}`);
    };
  },
  started: worker ? async () => BigInt(await worker.ask<string>("next")) : starts.next,
  ...(worker && { memory: worker.memory }),
  async end() {
    await worker?.stop();
    await ukemi.stop();
  },
});
