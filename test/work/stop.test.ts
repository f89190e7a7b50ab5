// Stopping: what runs is waited for, what does not end in time is given back, and no attempt is burnt.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";
import { until } from "../support/until.ts";
import { aborted } from "../support/aborted.ts";

const TYPE = "payment_intent.succeeded";

test("waits for the handlers under way", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  let started = 0;
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  ukemi.on("stripe", TYPE, async () => {
    started += 1;
    await released;
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1", "evt_2"]);
  await until(() => started === 2, "both to start");
  const stopped = ukemi.stop();
  release();
  await stopped;
  expect((await readJobs(pool)).map((job) => job.state)).toEqual(["done", "done"]);
  const { rows } = await pool.query("select end_reason from ukemi.workers");
  expect(rows).toEqual([{ end_reason: "stopped" }]);
});

test("gives back what does not end in time: it runs elsewhere, once, and its attempt is not burnt", async () => {
  const { url, pool } = await createDatabase();
  await pool.query("create table ledger (event text not null)");
  const slow = makeUkemi(url, { drainTimeoutMs: 100 });
  let isWaiting = false;
  let heard = false;
  slow.ukemi.on("stripe", TYPE, async ({ tx, event, signal }) => {
    await tx.query("insert into ledger values ($1)", [event.id]);
    isWaiting = true;
    await aborted(signal);
    heard = true;
  });
  await slow.ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await until(() => isWaiting, "it to run");
  await slow.ukemi.stop();
  expect(heard).toBe(true);
  expect((await readJobs(pool))[0]).toMatchObject({ state: "ready", attempt: 0, recoveries: 0 });

  const next = makeUkemi(url);
  next.ukemi.on("stripe", TYPE, async ({ tx, event }) => {
    await tx.query("insert into ledger values ($1)", [event.id]);
  });
  await next.ukemi.work();
  expect((await untilDrained(pool))[0]).toMatchObject({ state: "done", attempt: 1, recoveries: 0 });
  expect((await pool.query("select from ledger")).rowCount).toBe(1);
  const { rows } = await pool.query("select outcome, error_message from ukemi.attempts order by id");
  expect(rows).toEqual([{ outcome: "returned", error_message: "the worker was stopped" }]);
});

test("starts nothing after it was asked to stop, and can be stopped twice", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  let runs = 0;
  ukemi.on("stripe", TYPE, () => (runs += 1));
  const working = await ukemi.work();
  await working.stop();
  await storeElsewhere(url, ["evt_1"]);
  await Promise.all([working.stop(), ukemi.stop(), ukemi.stop()]);
  expect(runs).toBe(0);
  expect((await readJobs(pool))[0]).toMatchObject({ state: "ready", attempt: 0 });
});

test("stops at once where the database is gone", async () => {
  const { url, pool, name } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  ukemi.on("stripe", TYPE, () => {});
  await ukemi.work();
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()`,
    [name],
  );
  await ukemi.stop();
  expect((await readJobs(pool)).length).toBe(0);
});

test("registers anew after its session was cut, and gives back what it had", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi, lines } = makeUkemi(url);
  let runs = 0;
  ukemi.on("stripe", TYPE, async ({ signal }) => {
    runs += 1;
    if (runs === 1) await aborted(signal);
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await until(() => runs === 1, "it to run");
  await pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'ukemi session'",
  );
  expect((await untilDrained(pool))[0]).toMatchObject({ state: "done", attempt: 1, recoveries: 0 });
  expect(runs).toBe(2);
  expect(lines().some((line) => String(line.msg).includes("lost its session"))).toBe(true);
  const { rows } = await pool.query("select end_reason from ukemi.workers order by number");
  expect(rows).toEqual([{ end_reason: "replaced" }, { end_reason: null }]);
});
