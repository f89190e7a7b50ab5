// What a handler is given, and what follows from how it ends.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { notYet, retryAfter, terminal } from "../../src/index.ts";
import { createDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";

test("runs a handler once for a stored event, and commits its writes with its completion", async () => {
  const { url, pool } = await createDatabase();
  await pool.query("create table payments (id text primary key, status text)");
  const { ukemi } = makeUkemi(url);
  ukemi.on("stripe", "payment_intent.succeeded", async ({ event, tx, audit, job, received }) => {
    await tx.query("insert into payments values ($1, 'paid')", [event.id]);
    event.link({ billing: "b1", office: "o1", payment: event.id });
    await audit("payment.paid", { target: event.id, details: { attempt: job.attempt } });
    expect(received.body.toString()).toContain(event.id);
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1", "evt_2"]);
  const jobs = await untilDrained(pool);
  expect(jobs.map(({ state, attempt }) => ({ state, attempt }))).toEqual([
    { state: "done", attempt: 1 },
    { state: "done", attempt: 1 },
  ]);
  expect((await pool.query("select * from payments order by id")).rows).toEqual([
    { id: "evt_1", status: "paid" },
    { id: "evt_2", status: "paid" },
  ]);
  const { rows } = await pool.query(
    "select event_id, status, billing_id, office_id, processed_at is not null as processed from ukemi.webhook_events order by 1",
  );
  expect(rows[0]).toEqual({
    event_id: "evt_1",
    status: "success",
    billing_id: "b1",
    office_id: "o1",
    processed: true,
  });
  const audits = await pool.query("select actor, role, action, target from ukemi.audit_log order by target");
  expect(audits.rows).toHaveLength(2);
  expect(audits.rows[0]).toEqual({
    actor: "stripe/payment_intent.succeeded",
    role: "handler",
    action: "payment.paid",
    target: "evt_1",
  });
});

test("retries by the policy, then keeps the job as a dead letter", async () => {
  const { url, pool } = await createDatabase();
  const alerts: unknown[] = [];
  const { ukemi } = makeUkemi(url, { onAlert: (alert) => alerts.push(alert) });
  let runs = 0;
  ukemi.on(
    "stripe",
    "payment_intent.succeeded",
    () => {
      runs += 1;
      throw new TypeError("no such customer: jane@example.com, key sk_live_abcdef1234567890");
    },
    { retry: { retries: 2, delaysMs: [20, 30] } },
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  const [job] = await untilDrained(pool);
  expect(runs).toBe(3);
  expect(job).toMatchObject({
    state: "dead",
    attempt: 3,
    death: "exhausted",
    error_class: "TypeError",
    error_message: "no such customer: [address], key [key]",
  });
  const attempts = await pool.query(
    "select number, outcome, error_class, worker is not null as worker from ukemi.attempts order by id",
  );
  expect(attempts.rows).toEqual([
    { number: 1, outcome: "retry", error_class: "TypeError", worker: true },
    { number: 2, outcome: "retry", error_class: "TypeError", worker: true },
    { number: 3, outcome: "dead", error_class: "TypeError", worker: true },
  ]);
  expect(alerts).toHaveLength(1);
  expect((await pool.query("select event_id, error from ukemi.failed_webhook_events")).rows).toEqual([
    { event_id: "evt_1", error: "no such customer: [address], key [key]" },
  ]);
});

test("terminal, retryAfter and notYet do what they say", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  const seen: string[] = [];
  ukemi.on("stripe", "payment_intent.succeeded", ({ event, job }) => {
    seen.push(`${event.id} ${job.attempt}`);
    if (event.id === "evt_terminal") throw terminal("never");
    if (event.id === "evt_after" && job.attempt === 1) throw retryAfter(10);
    if (event.id === "evt_notyet" && seen.filter((line) => line.startsWith("evt_notyet")).length < 2)
      throw notYet("parent");
    if (event.id === "evt_overdue") throw notYet("parent", { within: 200 });
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_terminal", "evt_after", "evt_notyet", "evt_overdue"]);
  const jobs = await untilDrained(pool);
  expect(Object.fromEntries(jobs.map((job) => [job.event_id, [job.state, job.attempt, job.death]]))).toEqual({
    evt_terminal: ["dead", 1, "terminal"],
    evt_after: ["done", 2, null],
    evt_notyet: ["done", 1, null],
    evt_overdue: ["dead", 0, "overdue"],
  });
  expect(await readJobs(pool)).toHaveLength(4);
});

test("an alert hook that throws hurts nobody", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi, lines } = makeUkemi(url, {
    onAlert() {
      throw new Error("the pager is broken");
    },
  });
  ukemi.on("stripe", "payment_intent.succeeded", () => {
    throw terminal("never");
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1", "evt_2"]);
  const jobs = await untilDrained(pool);
  expect(jobs.map((job) => job.death)).toEqual(["terminal", "terminal"]);
  const messages = lines().map((line) => line.msg);
  expect(messages.filter((message) => message === "dead letter")).toHaveLength(2);
  expect(messages.filter((message) => message === "onAlert failed")).toHaveLength(2);
});

test("gives every try a step of the trace in which the event came", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const seen: string[] = [];
  ukemi.on(
    "stripe",
    "payment_intent.succeeded",
    ({ traceparent, job }) => {
      seen.push(traceparent);
      if (job.attempt === 1) throw new Error("once");
    },
    { retry: { retries: 1, delaysMs: [10] } },
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"], { traceparent: `00-${traceId}-b7ad6b7169203331-01` });
  await untilDrained(pool);
  expect(seen).toHaveLength(2);
  expect(new Set(seen).size).toBe(2);
  for (const traceparent of seen) expect(traceparent).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));
  const { rows } = await pool.query("select distinct trace_id from ukemi.attempts");
  expect(rows).toEqual([{ trace_id: traceId }]);
});

test("takes whatever a handler throws, and gives its connection back", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url, { handlerConnectionsMax: 1 });
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const odd: unknown[] = [null, undefined, proxy, "text", 5, Object.create(null)];
  ukemi.on(
    "stripe",
    "payment_intent.succeeded",
    async ({ tx, event }) => {
      await tx.query("select 1");
      const index = Number(event.id.slice(4));
      if (index < odd.length) throw odd[index];
    },
    { retry: { retries: 0 } },
  );
  await ukemi.work();
  await storeElsewhere(
    url,
    Array.from({ length: odd.length + 1 }, (_, index) => `evt_${index}`),
  );
  const jobs = await untilDrained(pool);
  expect(jobs.filter((job) => job.state === "done")).toHaveLength(1);
  expect(jobs.filter((job) => job.error_class === "NotAnError")).toHaveLength(odd.length);
});

test("keeps no memory of jobs that have ended", async () => {
  const { url } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  const signals: WeakRef<AbortSignal>[] = [];
  ukemi.task("remember", ({ signal }) => void signals.push(new WeakRef(signal)));
  await ukemi.work();
  for (let index = 0; index < 50; index++) await ukemi.enqueue(null, "remember", index);
  await until(() => signals.length === 50, "all to run");
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  await until(() => {
    collect();
    return signals.filter((signal) => signal.deref() !== undefined).length < 10;
  }, "the signals to be collected");
});
