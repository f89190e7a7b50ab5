// Tasks that are asked for in a transaction: they run if and only if it commits, once, and what is wrong is said clearly.
import { expect, onTestFinished, test } from "vitest";
import { UkemiError } from "../../src/errors.ts";
import { createDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";

/** A Ukemi that notes the payloads of the tasks it ran, and a client of the application's own. */
async function open() {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  const ran: unknown[] = [];
  ukemi.task("mail", ({ payload }) => void ran.push(payload));
  ukemi.task("post", ({ payload }) => void ran.push(payload));
  const client = await pool.connect();
  onTestFinished(() => client.release());
  return { url, pool, ukemi, ran, client };
}

test("a task runs once if the caller's transaction commits, and never if it is rolled back", async () => {
  const { pool, ukemi, ran, client } = await open();
  await pool.query("create table orders (id int)");
  await ukemi.work();
  await client.query("begin");
  await client.query("insert into orders values (1)");
  await ukemi.enqueue(client, "mail", "rolled back");
  await ukemi.enqueue(client, "mail", "rolled back, by key", { key: "k" });
  await client.query("rollback");
  await client.query("begin");
  await client.query("insert into orders values (2)");
  await ukemi.enqueue(client, "mail", "committed");
  await ukemi.enqueue(client, "mail", "committed, by key", { key: "k" });
  // a worker that looks now must not see it
  await ukemi.enqueue(null, "post", "before the commit");
  await until(() => ran.length === 1, "the task beside the transaction to run");
  expect(ran).toEqual(["before the commit"]);
  await client.query("commit");
  const jobs = await untilDrained(pool);
  expect(new Set(ran)).toEqual(new Set(["before the commit", "committed", "committed, by key"]));
  expect(ran).toHaveLength(3);
  expect(jobs.map(({ state, attempt }) => [state, attempt])).toEqual(jobs.map(() => ["done", 1]));
});

test("a second task with the same name, tenant and dedupe key is the first; another tenant's is not", async () => {
  const { pool, ukemi, ran, client } = await open();
  const dedupe = { dedupe: "order 1" };
  const first = await ukemi.enqueue(null, "mail", "first", dedupe);
  expect(first.duplicate).toBe(false);
  expect(await ukemi.enqueue(null, "mail", "second", dedupe)).toEqual({ id: first.id, duplicate: true });
  expect(await ukemi.enqueue(null, "mail", "a", { ...dedupe, tenant: "a" })).toMatchObject({
    duplicate: false,
  });
  expect(await ukemi.enqueue(null, "mail", "b", { ...dedupe, tenant: "b" })).toMatchObject({
    duplicate: false,
  });
  expect(await ukemi.enqueue(null, "mail", "a again", { ...dedupe, tenant: "a" })).toMatchObject({
    duplicate: true,
  });
  expect(await ukemi.enqueue(null, "post", "post", dedupe)).toMatchObject({ duplicate: false });
  await ukemi.work();
  await untilDrained(pool);
  expect(new Set(ran)).toEqual(new Set(["a", "b", "first", "post"]));
  expect(ran).toHaveLength(4);
  // also after it is done, and within a transaction, which goes on
  await client.query("begin");
  expect(await ukemi.enqueue(client, "mail", "third", dedupe)).toEqual({ id: first.id, duplicate: true });
  expect((await client.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  await client.query("commit");
});

test("two transactions that ask for the same task at once make one job", async () => {
  const { pool, ukemi, client } = await open();
  const asked = (tx: typeof client) => ukemi.enqueue(tx, "mail", "mail", { dedupe: "order 1" });
  const other = await pool.connect();
  onTestFinished(() => other.release());
  for (const end of ["commit", "rollback"]) {
    await pool.query("delete from ukemi.jobs");
    await client.query("begin");
    await other.query("begin");
    const first = await asked(client);
    const second = asked(other); // waits for the first to end
    await until(
      async () =>
        (await pool.query("select from pg_locks where not granted and locktype = 'transactionid'"))
          .rowCount === 1,
      "the second to wait",
    );
    await client.query(end);
    const { id, duplicate } = await second;
    await other.query("commit");
    expect(duplicate).toBe(end === "commit");
    expect((await readJobs(pool)).map((job) => job.id)).toEqual([id]);
    expect(id === first.id).toBe(end === "commit");
  }
});

const circular: Record<string, unknown> = {};
circular.self = circular;
const wrong: [what: string, payload: unknown, options: Record<string, unknown>][] = [
  ["a payload that is no JSON", circular, {}],
  ["a function", () => {}, {}],
  ["a bigint", 1n, {}],
  ["a payload beyond a megabyte", "x".repeat(1024 * 1024), {}],
  ["an empty key", 1, { key: "" }],
  ["a key with a zero byte", 1, { key: "a\u0000b" }],
  ["a lone surrogate in a tenant", 1, { tenant: "\ud800" }],
  ["a dedupe key that is too long", 1, { dedupe: "あ".repeat(86) }],
  ["a key that is no text", 1, { key: 5 }],
  ["no time", 1, { runAt: new Date(Number.NaN) }],
  ["a time that is text", 1, { runAt: "tomorrow" }],
  ["a time that is a number", 1, { runAt: 1_700_000_000_000 }],
  ["a time beyond all calendars", 1, { runAt: new Date(8.64e15) }],
  ["a time before all calendars", 1, { runAt: new Date(-8.64e15) }],
  ["a time before the first year", 1, { runAt: new Date(Date.UTC(-5, 0)) }],
  ["a negative delay", 1, { delayMs: -1 }],
  ["a delay that is no number", 1, { delayMs: Number.NaN }],
  ["a delay that is text", 1, { delayMs: "soon" }],
  ["an endless delay", 1, { delayMs: Number.POSITIVE_INFINITY }],
  ["both a delay and a time", 1, { delayMs: 1, runAt: new Date() }],
  ["an order without a key", 1, { ordered: true }],
  ["an order that is neither yes nor no", 1, { key: "k", ordered: "perhaps" }],
  ["a priority that is no whole number", 1, { priority: 1.5 }],
  ["a priority beyond all", 1, { priority: 40_000 }],
];

test("what is wrong is refused clearly, and leaves the caller's transaction as it was", async () => {
  const { pool, ukemi, client } = await open();
  for (const [what, payload, options] of wrong) {
    await client.query("begin");
    await ukemi.enqueue(client, "mail", what);
    const asked = ukemi.enqueue(client, "mail", payload, options);
    const refused: unknown = await asked.catch((error: unknown) => error);
    await client.query("commit");
    const message = refused instanceof UkemiError ? refused.message : `not clear: ${String(refused)}`;
    expect.soft(message, what).toMatch(/^enqueue\("mail"\): /);
    const { rows } = await pool.query("select payload from ukemi.job_payloads");
    expect.soft(rows, `the transaction around ${what}`).toEqual([{ payload: JSON.stringify(what) }]);
    await pool.query("delete from ukemi.jobs; delete from ukemi.job_payloads");
  }
});

test("a task that nobody declared is refused with the names of those there are", async () => {
  const { ukemi } = await open();
  await expect(ukemi.enqueue(null, "fax", 1)).rejects.toMatchObject({
    code: "invalid_option",
    message: 'There is no task named "fax"; there are mail, post.',
  });
});

test("a payload arrives as it was sent: zero bytes, lone surrogates, large, empty", async () => {
  const { pool, ukemi, ran } = await open();
  const payloads = [
    "a\u0000b",
    "\ud800 alone",
    { "\u0000": ["\udfff"], "emoji 🎌": 1e308 },
    "x".repeat(1024 * 1024 - 2),
    null,
    false,
    0,
    "",
    [],
  ];
  for (const payload of payloads)
    await ukemi.enqueue(null, "mail", payload, { key: "in order", ordered: true });
  await ukemi.enqueue(null, "mail", undefined, { key: "in order", ordered: true });
  await ukemi.work();
  await untilDrained(pool);
  expect(ran).toEqual([...payloads, null]);
});

test("a task that is committed while a claim is under way arrives with its payload", async () => {
  const { pool, ukemi, ran, client } = await open();
  await ukemi.work();
  // the claim has begun, but has not looked for jobs yet
  await client.query("begin; lock table ukemi.queues in access exclusive mode");
  const waits = "select from pg_locks where not granted and relation = 'ukemi.queues'::regclass";
  await until(async () => (await pool.query(waits)).rowCount! > 0, "a claim to wait");
  await ukemi.enqueue(null, "mail", "whole");
  await client.query("commit");
  await untilDrained(pool);
  expect(ran).toEqual(["whole"]);
});

test("a handler's own task runs after its commit, and not at all if it throws", async () => {
  const { url, pool, ukemi, ran } = await open();
  let tries = 0;
  ukemi.on(
    "stripe",
    "payment_intent.succeeded",
    async ({ event, tx, job }) => {
      await ukemi.enqueue(tx, "mail", `${event.id}, try ${job.attempt}`, { dedupe: event.id });
      tries += 1;
      if (event.id === "evt_never" || job.attempt === 1) throw new Error("after it asked");
    },
    { retry: { retries: 1, delaysMs: [1] } },
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_second", "evt_never"]);
  const jobs = await untilDrained(pool);
  expect(tries).toBe(4);
  expect(jobs.filter(({ handler }) => handler === "mail")).toHaveLength(1);
  expect(ran).toEqual(["evt_second, try 2"]);
});
