// The handler's transaction is opened when it is first used: a handler that does not use it takes no connection.
import { expect, test } from "vitest";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { createSignal } from "../support/sender.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";
import { until } from "../support/until.ts";

const TYPE = "payment_intent.succeeded";
const EVENTS = Array.from({ length: 20 }, (_, index) => `evt_${index}`);
const SETTINGS = { concurrency: EVENTS.length, handlerConnectionsMax: 1 };

/** What the connections for handlers' transactions are doing. */
async function handlerConnections(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ state: string }>(
    `select state from pg_stat_activity
     where datname = current_database() and application_name = 'ukemi handler'`,
  );
  return rows.map((row) => row.state);
}

test("many handlers that never touch tx run at once without a connection, and are settled", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url, SETTINGS);
  const released = createSignal();
  let running = 0;
  ukemi.on("stripe", TYPE, async () => {
    running += 1;
    await released.given;
  });
  await ukemi.work();
  await storeElsewhere(url, EVENTS);
  await until(() => running === EVENTS.length, "all of them to run at once");
  expect(await handlerConnections(pool)).toEqual([]);
  released.give();
  const jobs = await untilDrained(pool);
  expect(jobs.map(({ state, attempt }) => [state, attempt])).toEqual(EVENTS.map(() => ["done", 1]));
  expect(await handlerConnections(pool)).toEqual([]);
  const { rows } = await pool.query("select status, count(*)::int from ukemi.webhook_events group by status");
  expect(rows).toEqual([{ status: "success", count: EVENTS.length }]);
});

test("handlers that use tx take a connection each, and those that do not are not held up by them", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url, SETTINGS);
  const released = createSignal();
  let holding = 0;
  ukemi.on("stripe", TYPE, async ({ tx, event }) => {
    if (event.id !== EVENTS[0]) return;
    await tx.query("select 1");
    holding += 1;
    await released.given;
  });
  await ukemi.work();
  await storeElsewhere(url, EVENTS);
  const done = async () => (await pool.query("select from ukemi.jobs where state = 'done'")).rowCount;
  await until(async () => holding === 1 && (await done()) === EVENTS.length - 1, "the others to be done");
  expect(await handlerConnections(pool)).toEqual(["idle in transaction"]);
  released.give();
  const jobs = await untilDrained(pool);
  expect(jobs.every(({ state, attempt }) => state === "done" && attempt === 1)).toBe(true);
  await until(async () => (await handlerConnections(pool)).join() === "idle", "the connection to be free");
});
