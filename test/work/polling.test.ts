// How a worker hears of work: by notification at once, and by looking for itself where none comes.
import { expect, onTestFinished, test } from "vitest";
import type { Pool } from "../../src/storage/postgres.ts";
import { CHANNEL } from "../../src/storage/presence.ts";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";
import { createDatabase } from "../support/database.ts";
import { SECRET } from "../support/server.ts";
import { until } from "../support/until.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";

const TYPE = "payment_intent.succeeded";

/** Far less than the minute after which a worker would look for itself. */
const SOON_MS = 10_000;

/** Hears what workers are told. */
async function listen(pool: Pool): Promise<(string | undefined)[]> {
  const heard: (string | undefined)[] = [];
  const client = await pool.connect();
  onTestFinished(() => client.release(true));
  client.on("notification", ({ payload }) => heard.push(payload));
  await client.query(`listen ${CHANNEL}`);
  return heard;
}

/** A worker that would look for itself after this time, and what it ran. */
async function startWorker(url: string, pollMs: number) {
  const { ukemi } = makeUkemi(url, { pollMs });
  const ran: string[] = [];
  ukemi.on("stripe", TYPE, ({ event }) => void ran.push(event.id));
  ukemi.task("mail", ({ payload }) => void ran.push(String(payload)));
  await ukemi.work();
  // it has looked once, and found nothing
  await ukemi.enqueue(null, "mail", "first");
  await until(() => ran.length === 1, "the worker to be at work");
  ran.length = 0;
  return ran;
}

test("finds work by looking for it where nobody tells of any, again and again", async () => {
  const { url, pool } = await createDatabase();
  const ran = await startWorker(url, 200);
  const heard = await listen(pool);
  for (const id of ["evt_1", "evt_2", "evt_3"]) {
    await storeElsewhere(url, [id]);
    await untilDrained(pool);
  }
  expect(ran).toEqual(["evt_1", "evt_2", "evt_3"]);
  expect(heard).toEqual([]);
});

test("is told of a task that another process asked for", async () => {
  const { url, pool } = await createDatabase();
  const ran = await startWorker(url, 60_000);
  const asking = makeUkemi(url).ukemi;
  asking.task("mail", () => {});
  for (const payload of ["one", "two", "three"]) {
    await asking.enqueue(null, "mail", payload);
    await until(() => ran.at(-1) === payload, `${payload} to run`, SOON_MS);
  }
  // a job that has to wait for its key is told of as well
  await asking.enqueue(null, "mail", "keyed", { key: "k" });
  await until(() => ran.at(-1) === "keyed", "the task with a key to run", SOON_MS);
  const jobs = await untilDrained(pool);
  expect(jobs.map(({ state, attempt }) => [state, attempt])).toEqual(jobs.map(() => ["done", 1]));
});

test("is told of events that another process received", async () => {
  const { url, pool } = await createDatabase();
  const ran = await startWorker(url, 60_000);
  const receive = makeUkemi(url).ukemi.receiver("stripe");
  for (const id of ["evt_1", "evt_2", "evt_3"]) {
    const body = sampleEvent(TYPE, { id });
    const request = { method: "POST", headers: signStripe(body, SECRET), body };
    expect((await receive(new Request("http://there/webhooks/stripe", request))).status).toBe(204);
    await until(() => ran.at(-1) === id, `${id} to run`, SOON_MS);
  }
  expect(ran).toEqual(["evt_1", "evt_2", "evt_3"]);
  await untilDrained(pool);
});
