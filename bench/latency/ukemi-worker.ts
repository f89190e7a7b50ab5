// The other process: it only works, and says when a handler started. The clock is the machine's, the same for both.
import type * as Index from "../../src/index.ts";
import { built } from "../built.ts";
import { answerBench } from "../program.ts";
import { createStarts } from "./samples.ts";

const { createUkemi, stripe } = await built<typeof Index>("index.js");

const starts = createStarts();
const ukemi = createUkemi({
  database: process.env.DATABASE_URL!,
  sources: { stripe: stripe({ secrets: ["whsec_bench_0123456789abcdef0123456789abcdef"] }) },
});
ukemi.on("stripe", "payment_intent.succeeded", starts.note);
await ukemi.work();
answerBench({ next: async () => String(await starts.next()) }, () => ukemi.stop());
