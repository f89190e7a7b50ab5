// Jobs that are due later: at their time and not before, by the database's clock, whatever the polling.
import { expect, test } from "vitest";
import { retryAfter } from "../../src/index.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { registerSubscription } from "../../src/storage/subscriptions.ts";
import { createDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";
import { moveClock } from "../support/worked.ts";

const TYPE = "payment_intent.succeeded";

/** True where the job is due by the database's clock. */
const isDue = async (pool: Pool, job: string) =>
  (await pool.query("select from ukemi.jobs where id = $1 and run_at <= ukemi.now()", [job])).rowCount === 1;

async function databaseTime(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ at: Date }>("select ukemi.now() as at");
  return rows[0]!.at.getTime();
}

const HOUR_MS = 3_600_000;

test.each([
  ["runAt", async (pool: Pool) => ({ runAt: new Date((await databaseTime(pool)) + HOUR_MS) })],
  ["delayMs", () => Promise.resolve({ delayMs: HOUR_MS })],
])("a task with %s runs at its time by the database's clock, and not before", async (_, optionsOf) => {
  const { url, pool } = await createDatabase();
  await moveClock(pool, "3 days"); // far from this process's own
  const { ukemi } = makeUkemi(url);
  const ran: unknown[] = [];
  ukemi.task("mail", async ({ payload, job }) => {
    ran.push(payload);
    expect(await isDue(pool, job.id)).toBe(true);
  });
  await ukemi.work();
  await ukemi.enqueue(null, "mail", "later", await optionsOf(pool));
  /** By then the worker has looked again, at whatever the clock says now. */
  const lookedAgain = async (note: string) => {
    await ukemi.enqueue(null, "mail", note, { delayMs: 1 });
    await until(() => ran.includes(note), `${note} to run`);
  };
  await lookedAgain("now");
  await moveClock(pool, "3 days 59 minutes");
  await lookedAgain("before its time");
  expect(ran).toEqual(["now", "before its time"]);
  await moveClock(pool, "3 days 61 minutes");
  const jobs = await untilDrained(pool);
  expect(ran).toEqual(["now", "before its time", "later"]);
  expect(jobs.map(({ state, attempt }) => [state, attempt])).toEqual(jobs.map(() => ["done", 1]));
});

test("tasks run in the order of their times, not in that of their asking", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url, { concurrency: 1 });
  const ran: unknown[] = [];
  ukemi.task("mail", ({ payload }) => void ran.push(payload));
  const at = await databaseTime(pool);
  for (const minutes of [30, 10, 20]) {
    await ukemi.enqueue(null, "mail", minutes, { runAt: new Date(at + minutes * 60_000) });
  }
  await moveClock(pool, "1 hour");
  await ukemi.work();
  await untilDrained(pool);
  expect(ran).toEqual([10, 20, 30]);
});

test.each([
  ["the policy's delay", () => new Error("not at first")],
  ["the delay it asked for", () => retryAfter(300)],
])("a retry runs after %s and does not wait for the next look", async (_, thrown) => {
  const { url, pool } = await createDatabase();
  await registerSubscription(pool, { name: `stripe/${TYPE}`, source: "stripe", pattern: TYPE });
  await storeElsewhere(url, ["evt_1"]); // found at the worker's first look; the next is a minute away
  const { ukemi } = makeUkemi(url, { pollMs: 60_000 });
  const due: boolean[] = [];
  ukemi.on(
    "stripe",
    TYPE,
    async ({ job }) => {
      due.push(await isDue(pool, job.id));
      if (job.attempt < 3) throw thrown();
    },
    { retry: { retries: 2, delaysMs: [300] } },
  );
  await ukemi.work();
  const [job] = await untilDrained(pool, 10_000);
  expect(job).toMatchObject({ state: "done", attempt: 3 });
  expect(due).toEqual([true, true, true]);
});
test("a task with a short delay does not wait for the next look of a worker that found nothing to wait for", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url, { pollMs: 60_000 });
  const ran: unknown[] = [];
  ukemi.task("mail", ({ payload }) => void ran.push(payload));
  await ukemi.work();
  await ukemi.enqueue(null, "mail", "now");
  await until(() => ran.length === 1, "the worker to be at work", 10_000);
  await ukemi.enqueue(null, "mail", "later", { delayMs: 200 });
  await untilDrained(pool, 10_000);
  expect(ran).toEqual(["now", "later"]);
});
