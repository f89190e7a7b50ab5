// Ukemi as a user has it: mails are planned in the ledger, and its worker sends them at the rate that is set.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type * as Index from "../../src/index.ts";
import { built } from "../built.ts";
import { answerBench } from "../program.ts";

const { createUkemi } = await built<typeof Index>("index.js");

const mails = await mkdtemp(join(tmpdir(), "ukemi-bench-mails-"));
await mkdir(join(mails, "note"));
await writeFile(join(mails, "note", "en.subject.liquid"), "A note for {{ number }}");
await writeFile(join(mails, "note", "en.text.liquid"), "This is number {{ number }}.\n");

let planned = 0;

async function send({ count, perSecond, port }: { count: number; perSecond: number; port: number }) {
  const ukemi = createUkemi({
    database: process.env.DATABASE_URL!,
    smtpUrl: `smtp://127.0.0.1:${port}`,
    mailFrom: "bench@example.com",
    mailTemplates: mails,
    mailPerSecond: perSecond,
    mailGapMs: 0,
    logLevel: "silent",
    sources: {},
  });
  try {
    const until = planned + count;
    for (; planned < until; planned += 1) {
      const number = planned;
      await ukemi.effects.email(null, "note", {
        to: "jane@example.net",
        data: { number },
        dedupe: `${number}`,
      });
    }
    await ukemi.work();
    const { pool } = ukemi.store();
    const left = () => pool.query("select from ukemi.effects where state <> 'done' limit 1");
    while ((await left()).rowCount !== 0) await new Promise((resolve) => setTimeout(resolve, 50));
  } finally {
    await ukemi.stop();
  }
}

answerBench({ send }, () => rm(mails, { recursive: true, force: true }));
