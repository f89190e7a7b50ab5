// Handlers as subscriptions: several for one type, patterns, removed ones, and what becomes of the event.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";
import { until } from "../support/until.ts";

const TYPE = "payment_intent.succeeded";
const ONCE = { retry: { retries: 0 } };

test("makes one job for each handler that wants the event, and calls it a success when all are done", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  const ran: string[] = [];
  ukemi.on("stripe", TYPE, () => ran.push("exact"));
  ukemi.on("stripe", "payment_intent.*", () => ran.push("pattern"));
  ukemi.on("stripe", "*", () => ran.push("everything"), { name: "log" });
  ukemi.on("stripe", "charge.*", () => ran.push("other"));
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  const jobs = await untilDrained(pool);
  expect(jobs.map((job) => job.handler).toSorted()).toEqual([
    "log",
    "stripe/payment_intent.*",
    `stripe/${TYPE}`,
  ]);
  expect(ran.toSorted()).toEqual(["everything", "exact", "pattern"]);
  expect((await pool.query("select status from ukemi.webhook_events")).rows).toEqual([{ status: "success" }]);
});

test("calls an event failed while one of its handlers is dead, whichever ends first", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  ukemi.on("stripe", TYPE, ({ event }) => event.link({ billing: "b1" }), { name: "good" });
  ukemi.on(
    "stripe",
    TYPE,
    () => {
      throw new Error("broken");
    },
    { name: "bad", ...ONCE },
  );
  await ukemi.work();
  const ids = Array.from({ length: 20 }, (_, index) => `evt_${index}`);
  await storeElsewhere(url, ids);
  await untilDrained(pool);
  const { rows } = await pool.query(
    "select status, error_message, billing_id, count(*)::int as n from ukemi.webhook_events group by 1, 2, 3",
  );
  expect(rows).toEqual([{ status: "failed", error_message: "broken", billing_id: "b1", n: 20 }]);
});

test("calls it a success although many handlers of one event end at the same moment", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url, { concurrency: 20 });
  for (let index = 0; index < 5; index++) {
    ukemi.on("stripe", TYPE, async ({ tx }) => void (await tx.query("select 1")), { name: `h${index}` });
  }
  await ukemi.work();
  await storeElsewhere(
    url,
    Array.from({ length: 40 }, (_, index) => `evt_${index}`),
  );
  await untilDrained(pool);
  const { rows } = await pool.query("select status, count(*)::int as n from ukemi.webhook_events group by 1");
  expect(rows).toEqual([{ status: "success", n: 40 }]);
});

test("leaves the jobs of a handler that nobody has any more where they are, until somebody has it again", async () => {
  const { url, pool } = await createDatabase();
  const first = makeUkemi(url).ukemi;
  first.on("stripe", TYPE, () => {}, { name: "old" });
  await first.work();
  await first.stop();
  await storeElsewhere(url, ["evt_1"]);

  const second = makeUkemi(url).ukemi;
  const ran: string[] = [];
  second.on("stripe", TYPE, ({ event }) => ran.push(event.id), { name: "new" });
  await second.work();
  await storeElsewhere(url, ["evt_2"]);
  await until(() => ran.length === 1, "the new handler to run");
  expect((await readJobs(pool)).filter((job) => job.handler === "old").map((job) => job.state)).toEqual([
    "ready",
    "ready",
  ]);
  await second.stop();

  const third = makeUkemi(url).ukemi;
  third.on("stripe", TYPE, () => {}, { name: "old" });
  await third.work();
  const jobs = await untilDrained(pool);
  expect(jobs.every((job) => job.state === "done")).toBe(true);
});

test("refuses two handlers of one name, and a handler that comes after work()", async () => {
  const { url } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  ukemi.on("stripe", TYPE, () => {});
  expect(() => ukemi.on("stripe", TYPE, () => {})).toThrow(/two handlers named/);
  expect(() => ukemi.on("nobody" as "stripe", TYPE, () => {})).toThrow(/no source named "nobody"/);
  await ukemi.work();
  expect(() => ukemi.on("stripe", "charge.succeeded", () => {})).toThrow(/before work\(\)/);
});

test("refuses to work without handlers, and a queue that no handler uses", async () => {
  const { url } = await createDatabase();
  await expect(makeUkemi(url).ukemi.work()).rejects.toThrow(/no handlers/);
  const { ukemi } = makeUkemi(url, { queues: { mail: { concurrency: 2 } } });
  ukemi.on("stripe", TYPE, () => {});
  await expect(ukemi.work()).rejects.toThrow(/No handler uses the queue "mail"/);
});

test("takes our own ids away from the event when their row goes", async () => {
  const { url, pool } = await createDatabase();
  await pool.query(`create table billings (id text primary key);
    insert into billings values ('b1');
    create trigger unlink after delete on billings for each row execute function ukemi.unlink('billing_id', 'id')`);
  const { ukemi } = makeUkemi(url);
  ukemi.on("stripe", TYPE, ({ event }) => event.link({ billing: "b1", office: 7 }));
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await untilDrained(pool);
  const linked = () =>
    pool.query("select billing_id, office_id from ukemi.webhook_events").then(({ rows }) => rows);
  expect(await linked()).toEqual([{ billing_id: "b1", office_id: "7" }]);
  await pool.query("delete from billings");
  expect(await linked()).toEqual([{ billing_id: null, office_id: "7" }]);
});

test("writes the same audit line once, however often the handler runs", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  ukemi.on("stripe", TYPE, async ({ audit }) => {
    await audit("payment.paid", { target: "p1" });
    await audit("payment.paid", { target: "p1" });
    await audit("payment.paid", { target: "p2" });
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await untilDrained(pool);
  await pool.query("update ukemi.jobs set state = 'ready', finished_at = null, run_at = ukemi.now()");
  await untilDrained(pool);
  const { rows } = await pool.query("select target from ukemi.audit_log order by target");
  expect(rows).toEqual([{ target: "p1" }, { target: "p2" }]);
});

test("takes the jobs along when a handler moves to another queue, also those that are retried later", async () => {
  const { url, pool } = await createDatabase();
  await pool.query("create table ledger (event text not null)");
  const before = makeUkemi(url).ukemi;
  const failing = () => {
    throw new Error("not yet in its new queue");
  };
  before.on("stripe", TYPE, failing, { name: "moving", retry: { retries: 9, delaysMs: [1500] } });
  before.on("stripe", TYPE, failing, {
    name: "moving with a key",
    key: { ref: "payment_intent" },
    ordered: true,
    retry: { retries: 9, delaysMs: [1500] },
  });
  await before.work();
  await storeElsewhere(url, ["evt_1", "evt_2"], { refs: [{ kind: "payment_intent", id: "pi_1" }] });
  await until(
    async () => (await readJobs(pool)).filter((job) => job.attempt >= 1).length >= 3,
    "the tries of the version before",
  );
  await before.stop();
  const after = makeUkemi(url).ukemi;
  for (const name of ["moving", "moving with a key"]) {
    after.on(
      "stripe",
      TYPE,
      async ({ tx, event }) => void (await tx.query("insert into ledger values ($1)", [event.id])),
      {
        name,
        queue: "elsewhere",
        ...(name === "moving" ? {} : { key: { ref: "payment_intent" }, ordered: true }),
      },
    );
  }
  await after.work();
  const jobs = await untilDrained(pool);
  expect(jobs.map((job) => job.state)).toEqual(["done", "done", "done", "done"]);
  const { rows } = await pool.query(
    "select event, count(*)::int as n from ledger group by event order by event",
  );
  expect(rows).toEqual([
    { event: "evt_1", n: 2 },
    { event: "evt_2", n: 2 },
  ]);
});

test("makes the jobs of its handlers known when it starts, also where it does not work", async () => {
  const { url, pool } = await createDatabase();
  const receiving = makeUkemi(url).ukemi;
  receiving.on("stripe", TYPE, () => {});
  await receiving.start();
  await storeElsewhere(url, ["evt_1"]);
  expect((await readJobs(pool)).map((job) => job.state)).toEqual(["ready"]);
});
