// The edges of transactions in one trip: what a handler does behind its end, names, connections that cannot be had, slow
// statements. Nothing is written without the fence, and nobody pays for others.
import { expect, test } from "vitest";
import { createHandlerTransaction } from "../../src/storage/handler-transaction.ts";
import { openPool, readServerFacts } from "../../src/storage/postgres.ts";
import { createShared } from "../../src/storage/shared-transaction.ts";
import { createDatabase } from "../support/database.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";

const TYPE = "payment_intent.succeeded";
const LIMITS = { pooled: false, mark: "1/x", idleMs: 5000, statementMs: 2000, commitMs: 1000 };
const OLD = "trips are made on PostgreSQL 17 and newer";
const DONE = [{ name: "ukemi done", text: "select 1", values: [] }];
const LOST = [{ name: "ukemi lost", text: "select ukemi.lease_lost()", values: [] }];

async function withNumbers() {
  const { url, pool } = await createDatabase();
  await pool.query("create table numbers (n int); create table others (n int)");
  const own = openPool(url, { max: 1, queryTimeoutMs: 0, pipeline: true });
  const limits = { ...LIMITS, oneTrip: (await readServerFacts(pool)).major >= 17 };
  async function numbers(of = "numbers"): Promise<number[]> {
    const { rows } = await pool.query<{ n: number }>(`select n from ${of} order by n`);
    return rows.map(({ n }) => n);
  }
  return { url, own, limits, numbers };
}

test.for([
  ["while it waits for a connection", 0],
  ["a turn later", 1],
] as const)("a statement behind the end of its handler writes nothing: %s", async ([, turns], { skip }) => {
  const { own, limits, numbers } = await withNumbers();
  if (!limits.oneTrip) skip(OLD);
  const { tx, commit, rollback } = createHandlerTransaction(own, limits);
  tx.send("insert into numbers values (1)");
  const committing = commit(LOST);
  for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
  await expect(tx.query("insert into numbers values (2)")).rejects.toMatchObject({
    code: "transaction_over",
  });
  await expect(committing).rejects.toMatchObject({ name: "LeaseLost" });
  await rollback();
  expect(await numbers()).toEqual([]);
  await own.end();
});

test("a branch of a shared handler that goes on behind its failure writes nothing", async () => {
  const { own, limits, numbers } = await withNumbers();
  const shared = createShared(own, limits, 10);
  const part = shared.next();
  await part.tx.query("select 1");
  part.tx.send("select 1 / 0");
  await expect(part.tx.query("select 1")).rejects.toThrow(/./);
  await shared.rollback();
  await expect(part.tx.query("insert into numbers values (1)")).rejects.toMatchObject({
    code: "transaction_over",
  });
  expect(await numbers()).toEqual([]);
  await own.end();
});

test("a trip behind a completion that has not been answered knows its name", async () => {
  const { own, limits, numbers } = await withNumbers();
  const first = createHandlerTransaction(own, limits);
  await first.tx.query("insert into numbers values (1)");
  const second = createHandlerTransaction(own, limits);
  second.tx.send("insert into numbers values (2)");
  // the only connection is passed on: both completions have one name, and the first is on its way
  const waiting = second.commit(DONE);
  await Promise.all([first.commit(DONE), waiting]);
  expect(await numbers()).toEqual([1, 2]);
  await own.end();
});

test.each(["", null])("a name that is none (%j) stands for no other text", async (name) => {
  const { own, limits, numbers } = await withNumbers();
  const send = async (query: { name?: string | null; text: string }) => {
    const { tx, commit } = createHandlerTransaction(own, limits);
    tx.send(query as never);
    await commit(DONE);
  };
  await send({ name, text: "insert into numbers values (1)" });
  await send({ text: "insert into others values (2)" });
  await send({ name, text: "insert into numbers values (3)" });
  expect([await numbers(), await numbers("others")]).toEqual([[1, 3], [2]]);
  await own.end();
});

test.each([
  { what: "our own names", query: { name: "ukemi settle", text: "select 1" } },
  { what: "names that are no text", query: { name: 5, text: "select 1" } },
  { what: "a NUL in a text", query: { text: "select 1\0" } },
])("$what are refused at the line that says them", async ({ query }) => {
  const { own, limits } = await withNumbers();
  const { tx } = createHandlerTransaction(own, limits);
  expect(() => tx.send(query as never)).toThrow(/./);
  await expect(tx.query(query as never)).rejects.toMatchObject({ code: "transaction_over" });
  await own.end();
});

test("names that every object has are names like others", async ({ skip }) => {
  const { own, limits, numbers } = await withNumbers();
  if (!limits.oneTrip) skip(OLD);
  const { tx, commit } = createHandlerTransaction(own, limits);
  tx.send({ name: "constructor", text: "insert into numbers values (1)" });
  await commit(DONE);
  expect(await numbers()).toEqual([1]);
  await own.end();
});

test("what would outlive the transaction leaves nothing behind for the next", async () => {
  const { own, limits, numbers } = await withNumbers();
  for (const text of [
    "select 1 as n into temp others",
    "update pg_settings set setting = '7' where name = 'lock_timeout'",
  ]) {
    const { tx, commit } = createHandlerTransaction(own, limits);
    tx.send(text);
    await commit(DONE);
  }
  const { tx, commit } = createHandlerTransaction(own, limits);
  tx.send("insert into others values (current_setting('lock_timeout')::int)");
  await commit(DONE);
  expect(await numbers("others")).toEqual([0]);
  await own.end();
});

test("a statement that is slower than a commit may be has its own time", async () => {
  const { own, limits, numbers } = await withNumbers();
  const { tx, commit } = createHandlerTransaction(own, limits);
  tx.send("insert into numbers select 1 from pg_sleep(1.5)");
  await commit(DONE);
  expect(await numbers()).toEqual([1]);
  await own.end();
});

test("a value is what it was when it was sent", async () => {
  const { own, limits, numbers } = await withNumbers();
  const { tx, commit } = createHandlerTransaction(own, limits);
  const bytes = Buffer.from([1]);
  tx.send("insert into numbers values (get_byte($1::bytea, 0))", [bytes]);
  bytes[0] = 2;
  await commit(DONE);
  expect(await numbers()).toEqual([1]);
  await own.end();
});

test.each([false, true])(
  "a handler that gets no connection burns no attempt; shared: %s",
  async (sharedCommit) => {
    const { url, numbers } = await withNumbers();
    const other = openPool(url, { max: 1 });
    const { ukemi } = makeUkemi(url, { handlerConnectionsMax: 1, timeLimitMs: 300, concurrency: 4 });
    let isHeld = true;
    const handler = async ({
      tx,
      event,
    }: {
      tx: { query(text: string, values?: unknown[]): Promise<unknown> };
      event: { id: string };
    }) => {
      await tx.query("insert into numbers values ($1)", [Number(event.id.slice(4))]);
      // the first one keeps the only connection until it is cut off itself
      if (event.id === "evt_1" && isHeld) {
        isHeld = false;
        await new Promise((resolve) => setTimeout(resolve, 600));
      }
    };
    ukemi.on("stripe", TYPE, handler, { sharedCommit, retry: { retries: 1, delaysMs: [2000] } });
    await ukemi.work();
    await storeElsewhere(url, ["evt_1", "evt_2", "evt_3"]);
    const jobs = await untilDrained(other);
    expect(jobs.map(({ state }) => state)).toEqual(["done", "done", "done"]);
    expect(jobs.filter(({ event_id, attempt }) => event_id !== "evt_1" && attempt > 1)).toEqual([]);
    expect(await numbers()).toEqual([1, 2, 3]);
    await other.end();
  },
);
