// Jobs that are claimed ahead, because those before them ended quickly: no more run at once than may, and what has not started
// is free for others when the handlers become slow or the worker stops.
import { expect, test } from "vitest";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { MANDATE, operateOn } from "../support/dead.ts";
import { createSignal } from "../support/sender.ts";
import { until } from "../support/until.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";

const TYPE = "payment_intent.succeeded";
const CONCURRENCY = 2;
const COUNT = 5000;

async function storeMany(url: string): Promise<void> {
  await storeElsewhere(
    url,
    Array.from({ length: COUNT }, (_, number) => `evt_${number}`),
  );
}

async function countRunning(pool: Pool): Promise<number> {
  const { rowCount } = await pool.query("select from ukemi.jobs where state = 'running'");
  return rowCount!;
}

/** A worker whose handlers are quick until jobs were claimed ahead, and then end no more before they are let go. */
async function workAhead(url: string, pool: Pool) {
  const gate = createSignal();
  const seen = { running: 0, peak: 0, isSlow: false };
  const { ukemi } = makeUkemi(url, { concurrency: CONCURRENCY });
  ukemi.on("stripe", TYPE, async () => {
    seen.running += 1;
    seen.peak = Math.max(seen.peak, seen.running);
    if (seen.isSlow) await gate.given;
    seen.running -= 1;
  });
  await ukemi.work();
  await storeMany(url);
  await until(async () => (await countRunning(pool)) > 10 * CONCURRENCY, "jobs to be claimed ahead");
  seen.isSlow = true;
  await until(() => seen.running === CONCURRENCY, "all slots to be taken");
  return { ukemi, seen, letGo: gate.give };
}

async function expectUnburnt(pool: Pool): Promise<void> {
  const jobs = await untilDrained(pool);
  expect(jobs).toHaveLength(COUNT);
  expect(
    jobs.filter(({ state, attempt, recoveries }) => state !== "done" || attempt !== 1 || recoveries !== 0),
  ).toEqual([]);
  expect((await pool.query("select from ukemi.attempts")).rowCount).toBe(0);
}

test("what waits behind handlers that have become slow is given back: others run it", async () => {
  const { url, pool } = await createDatabase();
  const { seen, letGo } = await workAhead(url, pool);
  const other = makeUkemi(url, { concurrency: 10 });
  other.ukemi.on("stripe", TYPE, () => {});
  await other.ukemi.work();
  await until(
    async () => (await pool.query("select from ukemi.jobs where state <> 'done'")).rowCount === CONCURRENCY,
    "the other to run all but those that have started",
  );
  expect(seen.running).toBe(CONCURRENCY);
  letGo();
  await expectUnburnt(pool);
  expect(seen.peak).toBe(CONCURRENCY);
});

test("a worker that is stopped gives back at once what has not started, while it waits for the others", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi, seen, letGo } = await workAhead(url, pool);
  const stopped = ukemi.stop();
  await until(async () => (await countRunning(pool)) === CONCURRENCY, "the rest to be given back");
  expect(seen.running).toBe(CONCURRENCY);
  const { rows } = await pool.query(
    "select count(*)::integer from ukemi.jobs where state = 'ready' and (started_at is not null or lease_token is not null)",
  );
  expect(rows).toEqual([{ count: 0 }]);
  letGo();
  await stopped;
  const next = makeUkemi(url);
  next.ukemi.on("stripe", TYPE, () => {});
  await next.ukemi.work();
  await expectUnburnt(pool);
});

test("what was claimed ahead of a pause does not begin: it is given back, and waits for the queue to be resumed", async () => {
  const { url, pool } = await createDatabase();
  const { seen, letGo } = await workAhead(url, pool);
  const { queues } = operateOn(pool);
  await queues.pause("default", MANDATE);
  await until(async () => (await countRunning(pool)) === CONCURRENCY, "the rest to be given back");
  const waiting = async () =>
    (await pool.query("select from ukemi.jobs where state = 'ready' and started_at is null")).rowCount!;
  const left = await waiting();
  letGo();
  await until(async () => (await countRunning(pool)) === 0, "those that had begun to end");
  expect(await waiting(), "nothing more has begun").toBe(left);
  await queues.resume("default", MANDATE);
  await expectUnburnt(pool);
  expect(seen.peak).toBe(CONCURRENCY);
});

test("a session that is lost tells of no tries that were none", async () => {
  const { url, pool } = await createDatabase();
  const { letGo } = await workAhead(url, pool);
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and application_name like 'ukemi %'`,
  );
  await until(
    async () => (await pool.query("select from ukemi.workers where end_reason = 'replaced'")).rowCount === 1,
    "the worker to come back",
  );
  letGo();
  const jobs = await untilDrained(pool);
  expect(
    jobs.filter(({ state, attempt, recoveries }) => state !== "done" || attempt !== 1 || recoveries !== 0),
  ).toEqual([]);
  const { rows } = await pool.query<{ outcome: string }>("select outcome from ukemi.attempts");
  expect(new Set(rows.map(({ outcome }) => outcome)), "of those that had begun").toEqual(
    new Set(["returned"]),
  );
  expect(rows.length).toBeLessThanOrEqual(2 * CONCURRENCY);
});
