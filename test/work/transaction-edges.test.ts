// The edges of handlers' transactions: what is not waited for, what is undone inside, connections that pass from hand to hand,
// are lost or fall silent. Nobody loses a write, or an attempt, for what others did.
import { expect, test } from "vitest";
import { createHandlerTransaction } from "../../src/storage/handler-transaction.ts";
import { openPool, type Pool } from "../../src/storage/postgres.ts";
import { createShared } from "../../src/storage/shared-transaction.ts";
import { createDatabase } from "../support/database.ts";
import { poolerProgram, startPooler } from "../support/pgbouncer.ts";
import { proxyDatabase } from "../support/proxied.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";

const TYPE = "payment_intent.succeeded";
const RETRY = { retry: { retries: 2, delaysMs: [20] } };

async function withLedger(): Promise<{ url: string; pool: Pool; entries: () => Promise<string[]> }> {
  const { url, pool } = await createDatabase();
  await pool.query("create table ledger (event text not null, note jsonb)");
  async function entries(): Promise<string[]> {
    const { rows } = await pool.query<{ event: string }>("select event from ledger order by event");
    return rows.map((row) => row.event);
  }
  return { url, pool, entries };
}

const named = (count: number) => Array.from({ length: count }, (_, nth) => `evt_${nth}`);

test("an inner transaction that did more than read and write can be rolled back", async () => {
  const { url, pool, entries } = await withLedger();
  const { ukemi } = makeUkemi(url);
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event }) => {
      const inner = await tx.pool.connect();
      await inner.query("begin");
      await inner.query("lock table ledger in share row exclusive mode");
      await inner.query("rollback");
      await tx.query("insert into ledger values ($1)", [event.id]);
    },
    RETRY,
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  expect(await untilDrained(pool)).toMatchObject([{ state: "done", attempt: 1 }]);
  expect(await entries()).toEqual(["evt_1"]);
});

test("a savepoint takes back what was sent inside it, and nothing else", async () => {
  const { url, pool, entries } = await withLedger();
  const { ukemi } = makeUkemi(url);
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event }) => {
      await tx.query("savepoint a");
      tx.send("insert into ledger values ('undone')");
      await tx.query("rollback to savepoint a");
      await tx.query("insert into ledger values ($1)", [event.id]);
    },
    RETRY,
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  expect(await untilDrained(pool)).toMatchObject([{ state: "done", attempt: 1 }]);
  expect(await entries()).toEqual(["evt_1"]);
});

const UNSENDABLE = [
  {
    what: "a value that cannot be written",
    args: ["insert into ledger values ('x', $1)", [{ amount: 10n }]],
  },
  { what: "something that is no statement", args: [{ sql: "insert into ledger values ('x')" }] },
  { what: "values that are no array", args: ["insert into ledger values ($1)", "x"] },
  {
    what: "a name that stands for another text",
    args: [{ name: "n", text: "insert into ledger values ('x')" }],
  },
];

test.each(UNSENDABLE.flatMap((one) => [false, true].map((sharedCommit) => ({ ...one, sharedCommit }))))(
  "$what is not sent, and fails the try though nobody waits; shared: $sharedCommit",
  async ({ args, sharedCommit }) => {
    const { url, pool, entries } = await withLedger();
    const { ukemi } = makeUkemi(url);
    ukemi.on(
      "stripe",
      TYPE,
      async ({ tx }) => {
        await tx.query({ name: "n", text: "select 1" });
        tx.send("insert into ledger values ('lost')");
        (tx.send as (...args: unknown[]) => void)(...args);
      },
      { ...RETRY, sharedCommit },
    );
    await ukemi.work();
    await storeElsewhere(url, ["evt_1"]);
    expect(await untilDrained(pool)).toMatchObject([{ state: "dead", attempt: 3 }]);
    expect(await entries()).toEqual([]);
  },
);

test.each([false, true])("a connection that is lost burns no attempt; shared: %s", async (sharedCommit) => {
  const { url, pool, entries } = await withLedger();
  const { ukemi } = makeUkemi(url);
  let isFirst = true;
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event }) => {
      await tx.query("insert into ledger values ($1)", [event.id]);
      if (isFirst) {
        isFirst = false;
        await pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and application_name = 'ukemi handler'`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      await tx.query("select 1");
    },
    { ...RETRY, sharedCommit },
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  expect(await untilDrained(pool)).toMatchObject([{ state: "done", attempt: 1 }]);
  expect(await entries()).toEqual(["evt_1"]);
});

test("who stands behind a slow commit on its connection does not pay for it", async () => {
  const { url, pool, entries } = await withLedger();
  await pool.query(`create function slow() returns trigger language plpgsql as $$
    begin if new.event = 'evt_0' then perform pg_sleep(3); end if; return null; end $$;
    create constraint trigger slow after insert on ledger deferrable initially deferred
      for each row execute function slow()`);
  const { ukemi } = makeUkemi(url, { concurrency: 20, handlerConnectionsMax: 2, timeLimitMs: 1000 });
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event }) => {
      await tx.query("insert into ledger values ($1)", [event.id]);
      await new Promise((resolve) => setTimeout(resolve, 30));
    },
    RETRY,
  );
  await ukemi.work();
  await storeElsewhere(url, named(8));
  const jobs = await untilDrained(pool);
  expect(jobs.filter(({ state, attempt }) => state !== "done" || attempt !== 1)).toEqual([]);
  expect(await entries()).toEqual(named(8));
});

test("who comes after one that left a slow statement behind does not pay for it", async () => {
  const { url, pool } = await withLedger();
  const { ukemi } = makeUkemi(url, { concurrency: 20, handlerConnectionsMax: 2, timeLimitMs: 1500 });
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event, job }) => {
      if (event.id === "evt_0" && job.attempt === 1) {
        await tx.query("select 1");
        void tx.query("select pg_sleep(2.4)").catch(() => {});
        throw new Error("its own");
      }
      await tx.query("insert into ledger values ($1)", [event.id]);
    },
    RETRY,
  );
  await ukemi.work();
  await storeElsewhere(url, named(8));
  const others = (await untilDrained(pool)).filter(({ event_id }) => event_id !== "evt_0");
  expect(others.filter(({ state, attempt }) => state !== "done" || attempt !== 1)).toEqual([]);
});

const LAST = [{ name: "x", text: "select 1", values: [] }];
type Limits = Parameters<typeof createHandlerTransaction>[1];
const SILENT: Record<string, (pool: Pool, limits: Limits) => Promise<unknown>> = {
  "a shared one that is waited for": (pool, limits) =>
    createShared(pool, limits, 10).next().tx.query("select 1"),
  "a shared one": (pool, limits) => createShared(pool, limits, 10).commit(LAST),
  "one that is committed without a statement": (pool, limits) =>
    createHandlerTransaction(pool, limits).commit(LAST),
};

test.each(Object.keys(SILENT))(
  "a peer that falls silent holds up no transaction for ever: %s",
  async (which) => {
    const { url } = await createDatabase();
    const { url: through, proxy } = await proxyDatabase(url);
    const pool = openPool(through, { max: 1, queryTimeoutMs: 0, pipeline: true });
    const limits = {
      pooled: false,
      oneTrip: true,
      mark: "1/x",
      idleMs: 5000,
      statementMs: 1000,
      commitMs: 300,
    };
    await pool.query("select 1");
    proxy.strand();
    await expect(SILENT[which]!(pool, limits)).rejects.toThrow(/./);
  },
);

test.skipIf(poolerProgram === undefined)("handlers of one event share commits behind a pooler", async () => {
  const { url, pool, entries } = await withLedger();
  const { ukemi } = makeUkemi(await startPooler(url), { concurrency: 80 });
  for (const name of ["first", "second"]) {
    ukemi.on(
      "stripe",
      TYPE,
      async ({ tx, event }) => void (await tx.query("insert into ledger values ($1)", [event.id])),
      { ...RETRY, sharedCommit: true, name },
    );
  }
  await ukemi.work();
  await storeElsewhere(url, named(60));
  const jobs = await untilDrained(pool);
  expect(jobs.filter(({ state, attempt }) => state !== "done" || attempt !== 1)).toEqual([]);
  expect((await entries()).length).toBe(120);
});
