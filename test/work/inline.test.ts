// Inline handlers: 2xx after the handler's commit; on failure nothing is stored, 500, and the sender's redelivery succeeds.
import { expect, onTestFinished, test } from "vitest";
import { terminal, type EventContext } from "../../src/index.ts";
import { startServer } from "../../src/server/server.ts";
import { createDatabase } from "../support/database.ts";
import { createSender, letters } from "../support/sender.ts";
import { makeUkemi, readJobs, untilDrained } from "../support/work.ts";
import { aborted } from "../support/aborted.ts";

/** A server whose handler for payments is inline. */
async function serveInline(handler: (context: EventContext<object>) => unknown, options = {}) {
  const { url, pool } = await createDatabase();
  await pool.query("create table billings (id text primary key, paid integer not null default 0)");
  await pool.query("insert into billings values ('b1')");
  const { ukemi, lines } = makeUkemi(url, { port: 0, ...options });
  ukemi.on("stripe", "payment_intent.succeeded", handler, { queue: "inline" });
  await ukemi.start();
  const server = await startServer(ukemi);
  onTestFinished(() => server.stop());
  return { pool, url, ukemi, sender: createSender(server.url), lines };
}

const counts = async (pool: { query: (text: string) => Promise<{ rows: unknown[] }> }) =>
  (
    await pool.query(`select
      (select count(*)::int from ukemi.events) as events,
      (select count(*)::int from ukemi.jobs) as jobs,
      (select count(*)::int from ukemi.audit_log) as audits,
      (select paid from billings) as paid`)
  ).rows[0];

test("answers 204 after billing change, event and audit are committed together", async () => {
  const { pool, sender } = await serveInline(async ({ tx, audit, event }) => {
    await tx.query("update billings set paid = paid + 1");
    await audit("billing.paid", { target: "b1" });
    event.link({ billing: "b1" });
  });
  const [letter] = letters("inline", 1);
  const told = await sender.send(letter!);
  expect(told).toMatchObject({ status: 204, duplicate: false });
  expect(await counts(pool)).toEqual({ events: 1, jobs: 1, audits: 1, paid: 1 });
  expect((await readJobs(pool))[0]).toMatchObject({ state: "done", attempt: 1 });
  expect(await sender.send(letter!)).toMatchObject({
    status: 204,
    duplicate: true,
    messageId: told.messageId,
  });
  expect(await counts(pool)).toEqual({ events: 1, jobs: 1, audits: 1, paid: 1 });
  const { rows } = await pool.query("select status, billing_id from ukemi.webhook_events");
  expect(rows).toEqual([{ status: "success", billing_id: "b1" }]);
});

test("rolls back everything when the audit cannot be written, and the next delivery succeeds", async () => {
  const { pool, sender } = await serveInline(async ({ tx, audit }) => {
    await tx.query("update billings set paid = paid + 1");
    await audit("billing.paid", { target: "b1" });
  });
  await pool.query(`create function full_disk() returns trigger language plpgsql as $$
    begin raise exception 'no space left' using errcode = 'disk_full'; end $$;
    create trigger full_disk before insert on ukemi.audit_log for each row execute function full_disk()`);
  const [letter] = letters("audit", 1);
  expect((await sender.send(letter!)).status).toBe(503);
  expect(await counts(pool)).toEqual({ events: 0, jobs: 0, audits: 0, paid: 0 });
  await pool.query("drop trigger full_disk on ukemi.audit_log");
  await pool.query(`create or replace function full_disk() returns trigger language plpgsql as $$
    begin raise exception 'not allowed'; end $$;
    create trigger full_disk before insert on ukemi.audit_log for each row execute function full_disk()`);
  expect((await sender.send(letter!)).status).toBe(500);
  expect(await counts(pool)).toEqual({ events: 0, jobs: 0, audits: 0, paid: 0 });
  await pool.query("drop trigger full_disk on ukemi.audit_log");
  expect(await sender.send(letter!)).toMatchObject({ status: 204, duplicate: false });
  expect(await counts(pool)).toEqual({ events: 1, jobs: 1, audits: 1, paid: 1 });
});

test("answers 500 and stores nothing when the handler throws; the redelivery succeeds", async () => {
  let broken = true;
  const { pool, sender } = await serveInline(async ({ tx }) => {
    await tx.query("update billings set paid = paid + 1");
    if (broken) throw new Error("the office is not there yet");
  });
  const [letter] = letters("throw", 1);
  expect((await sender.send(letter!)).status).toBe(500);
  expect(await counts(pool)).toEqual({ events: 0, jobs: 0, audits: 0, paid: 0 });
  broken = false;
  expect(await sender.send(letter!)).toMatchObject({ status: 204, duplicate: false });
  expect(await counts(pool)).toEqual({ events: 1, jobs: 1, audits: 0, paid: 1 });
});

test("lets two deliveries at once have one effect, and tells both 2xx", async () => {
  const { pool, sender } = await serveInline(async ({ tx }) => {
    await tx.query("update billings set paid = paid + 1");
    await tx.query("select pg_sleep(0.2)");
  });
  const [letter] = letters("race", 1);
  const told = await Promise.all([sender.send(letter!), sender.send(letter!), sender.send(letter!)]);
  expect(told.map(({ status }) => status)).toEqual([204, 204, 204]);
  expect(told.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
  expect(await counts(pool)).toEqual({ events: 1, jobs: 1, audits: 0, paid: 1 });
});

test("takes a unique violation of the application's own table for an error, not for a duplicate", async () => {
  const { pool, sender } = await serveInline(async ({ tx }) => {
    await tx.query("insert into billings values ('b1')");
  });
  const [letter] = letters("unique", 1);
  expect((await sender.send(letter!)).status).toBe(500);
  expect(await counts(pool)).toEqual({ events: 0, jobs: 0, audits: 0, paid: 0 });
});

test("stores the event with a dead letter where the handler says that no retry can help", async () => {
  const { pool, sender } = await serveInline(async ({ tx }) => {
    await tx.query("update billings set paid = paid + 1");
    throw terminal("not a legitimate event");
  });
  const [letter] = letters("terminal", 1);
  expect((await sender.send(letter!)).status).toBe(204);
  expect(await counts(pool)).toEqual({ events: 1, jobs: 1, audits: 1, paid: 0 });
  expect((await untilDrained(pool))[0]).toMatchObject({ state: "dead", death: "terminal" });
});

test("gives up a handler that takes too long before the sender does", async () => {
  const { pool, sender } = await serveInline(
    async ({ tx, signal }) => {
      await tx.query("update billings set paid = paid + 1");
      await aborted(signal);
    },
    { commitDeadlineMs: 300 },
  );
  const [letter] = letters("slow", 1);
  expect((await sender.send(letter!)).status).toBe(500);
  expect(await counts(pool)).toEqual({ events: 0, jobs: 0, audits: 0, paid: 0 });
});

test("runs its handler also where another inline handler that nobody has here is registered", async () => {
  const { pool, sender } = await serveInline(async ({ tx }) => {
    await tx.query("update billings set paid = paid + 1");
  });
  await pool.query(
    "insert into ukemi.subscriptions (name, source, pattern, queue) values ('a-old', 'stripe', '*', 'inline')",
  );
  const [letter] = letters("other", 1);
  expect((await sender.send(letter!)).status).toBe(204);
  expect(await counts(pool)).toEqual({ events: 1, jobs: 2, audits: 0, paid: 1 });
});
