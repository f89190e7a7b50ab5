// Heartbeats: a handler may take longer than its lease, and one that has lost its lease is told so.
import { expect, onTestFinished, test } from "vitest";
import { rescueJobs } from "../../src/storage/rescue.ts";
import { Stopped } from "../../src/work/running.ts";
import { createDatabase } from "../support/database.ts";
import { createSignal } from "../support/sender.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";
import { until } from "../support/until.ts";
import { aborted } from "../support/aborted.ts";

const TYPE = "payment_intent.succeeded";

test.each(["that never touches tx", "in the middle of a long statement"])(
  "a handler %s keeps its lease for longer than the lease lasts, beside another worker",
  async (which) => {
    const { url, pool } = await createDatabase();
    const released = createSignal();
    const lock = await pool.connect();
    onTestFinished(() => lock.release());
    await lock.query("select pg_advisory_lock(7)");
    let runs = 0;
    const workers = [makeUkemi(url, { leaseMs: 1500 }), makeUkemi(url, { leaseMs: 1500 })];
    for (const { ukemi } of workers) {
      ukemi.on("stripe", TYPE, async ({ tx }) => {
        runs += 1;
        if (which.endsWith("statement")) await tx.query("select pg_advisory_xact_lock(7)");
        else await released.given;
      });
      await ukemi.work();
    }
    await storeElsewhere(url, ["evt_1"]);
    // by the clock that leases are compared with: three of them have passed
    await until(
      async () =>
        (await pool.query("select from ukemi.jobs where ukemi.now() > started_at + interval '4.5 s'"))
          .rowCount === 1,
      "the job to be older than three leases",
    );
    expect(runs).toBe(1);
    expect((await readJobs(pool))[0]).toMatchObject({ state: "running", attempt: 0, recoveries: 0 });
    released.give();
    await lock.query("select pg_advisory_unlock(7)");
    const jobs = await untilDrained(pool);
    expect(jobs).toMatchObject([{ state: "done", attempt: 1, recoveries: 0 }]);
    expect(runs).toBe(1);
    expect((await pool.query("select from ukemi.attempts")).rowCount).toBe(0);
    const live = await pool.query("select from ukemi.workers where ended_at is null");
    expect(live.rowCount).toBe(2);
  },
);

test("a lease that lapsed because its row was locked stays with its worker, as long as that is heard of", async () => {
  const { url, pool } = await createDatabase();
  const released = createSignal();
  const lock = await pool.connect();
  onTestFinished(() => lock.release());
  let runs = 0;
  const { ukemi } = makeUkemi(url, { leaseMs: 1500 });
  ukemi.on("stripe", TYPE, async () => {
    runs += 1;
    await released.given;
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await until(() => runs === 1, "the handler to run");
  await lock.query("begin; select from ukemi.jobs for update");
  const isHeardOf = `select from ukemi.jobs j join ukemi.workers w on w.id = j.worker where w.seen_at > j.lease_until`;
  await until(
    async () => (await pool.query(isHeardOf)).rowCount === 1,
    "the worker to be heard of behind the lease",
  );
  await lock.query("rollback");
  expect(await rescueJobs(pool)).toEqual([]);
  released.give();
  expect(await untilDrained(pool)).toMatchObject([{ state: "done", attempt: 1, recoveries: 0 }]);
  expect(runs).toBe(1);
});

test("a handler whose lease was taken away hears of it at the next heartbeat, and can write nothing more", async () => {
  const { url, pool } = await createDatabase();
  await pool.query("create table ledger (event text not null)");
  // a heartbeat every two seconds: what is heard within eight is not the end of the lease
  const { ukemi, lines } = makeUkemi(url, { leaseMs: 12_000, drainTimeoutMs: 100 });
  const heard: unknown[] = [];
  const refused: unknown[] = [];
  let begun = 0;
  ukemi.on("stripe", TYPE, async ({ tx, event, signal }) => {
    begun += 1;
    await aborted(signal);
    heard.push(signal.reason);
    await tx
      .query("insert into ledger values ($1)", [event.id])
      .catch((error: unknown) => refused.push(error));
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1", "evt_2"]);
  await until(() => begun === 2, "both handlers to begin");
  const taken = await pool.query<{ id: string }>(
    `update ukemi.jobs
     set lease_token = 'ffffffff-ffff-4fff-bfff-ffffffffffff', worker = gen_random_uuid()
     where id = (select min(id) from ukemi.jobs)
     returning id`,
  );
  await until(() => heard.length === 1, "the handler to be told", 8000);
  expect(heard[0]).toBeInstanceOf(Stopped);
  expect(heard[0]).toMatchObject({ reason: "lease_lost" });
  await until(() => lines().some((line) => line.outcome === "lost"), "the try to be lost");
  expect(refused).toMatchObject([{ code: "transaction_over" }]);
  expect((await pool.query("select from ledger")).rowCount).toBe(0);
  const told = lines().filter((line) => String(line.msg).startsWith("a lease was lost"));
  expect(told).toMatchObject([{ job: taken.rows[0]!.id }]);
  // its neighbour keeps its own
  expect((await readJobs(pool)).map(({ state, attempt }) => [state, attempt])).toEqual([
    ["running", 0],
    ["running", 0],
  ]);
  expect(heard).toHaveLength(1);
});
