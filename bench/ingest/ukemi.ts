// Ukemi as a user has it: built, with its logs and metrics on, and one handler that wants the event.
import type * as Index from "../../src/index.ts";
import type * as Server from "../../src/server/server.ts";
import { built } from "../built.ts";
import { answerBench } from "../program.ts";

const { createUkemi, stripe } = await built<typeof Index>("index.js");
const { startServer } = await built<typeof Server>("server/server.js");

const isQuiet = process.env.BENCH_LOGS === "off";
const ukemi = createUkemi({
  database: process.env.DATABASE_URL!,
  port: 0,
  logLevel: isQuiet ? "silent" : "info",
  sources: { stripe: stripe({ secrets: [process.env.BENCH_SECRET!] }) },
});
// what they cost is measured by leaving them out: no user can
if (isQuiet) Object.assign(ukemi.metrics, { receipt() {}, request() {} });
ukemi.on("stripe", "payment_intent.succeeded", () => {});
await ukemi.start();
const server = await startServer(ukemi);
answerBench({ port: () => Number(new URL(server.url).port) }, async () => {
  await server.stop();
  await ukemi.stop();
});
