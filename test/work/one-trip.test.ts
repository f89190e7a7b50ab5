// Handlers that wait for none of their statements: what they send and their completion go out in one trip, as one transaction.
import { expect, test } from "vitest";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";
import { held } from "../support/held.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";

const TYPE = "payment_intent.succeeded";
const RETRY = { retry: { retries: 2, delaysMs: [20] } };
const WAYS = [
  { sharedCommit: false, ...RETRY },
  { sharedCommit: true, ...RETRY },
];

async function withLedger(): Promise<{ url: string; pool: Pool; entries: () => Promise<string[]> }> {
  const { url, pool } = await createDatabase();
  await pool.query(`
    create table ledger (event text not null, note text, by xid8 not null default pg_current_xact_id());
    create table statements (text text, by xid8 not null default pg_current_xact_id());
    create function note_completion() returns trigger language plpgsql as $$
      begin insert into statements values (new.event::text); return null; end $$;
    create trigger note_completion after update on ukemi.jobs
      for each row when (new.state = 'done') execute function note_completion()`);
  async function entries(): Promise<string[]> {
    const { rows } = await pool.query<{ event: string }>("select event from ledger order by event");
    return rows.map((row) => row.event);
  }
  return { url, pool, entries };
}

const named = (count: number) => Array.from({ length: count }, (_, nth) => `evt_${nth}`);

test.each(WAYS)("writes and completions share a transaction; shared: $sharedCommit", async (options) => {
  const { url, pool, entries } = await withLedger();
  const { ukemi } = makeUkemi(url, { concurrency: 20, handlerConnectionsMax: 2 });
  ukemi.on(
    "stripe",
    TYPE,
    ({ tx, event }) => {
      tx.send({ name: "first", text: "insert into ledger values ($1, 'a')", values: [event.id] });
      tx.send("update ledger set note = note || 'b' where event = $1", [event.id]);
    },
    options,
  );
  await ukemi.work();
  await storeElsewhere(url, named(40));
  const jobs = await untilDrained(pool);
  expect(jobs.filter(({ state, attempt }) => state !== "done" || attempt !== 1)).toEqual([]);
  expect((await entries()).length).toBe(40);
  const { rows } = await pool.query(
    `select count(*)::int as n, bool_and(exists (select from statements s where s.by = l.by)) as together
     from ledger l where note = 'ab'`,
  );
  expect(rows).toEqual([{ n: 40, together: true }]);
});

test.each(WAYS)(
  "what is sent before a statement that is waited for is there when that runs; shared: $sharedCommit",
  async (options) => {
    const { url, pool } = await withLedger();
    const { ukemi } = makeUkemi(url, { concurrency: 20 });
    const seen: unknown[] = [];
    let nth = 0;
    ukemi.on(
      "stripe",
      TYPE,
      async ({ tx, event }) => {
        tx.send("insert into ledger values ($1, 'a')", [event.id]);
        if ((nth += 1) % 3 !== 0) return; // in a shared commit, others were held back before
        const { rows } = await tx.query("select note from ledger where event = $1", [event.id]);
        seen.push(...rows);
        tx.send("update ledger set note = 'b' where event = $1", [event.id]);
      },
      options,
    );
    await ukemi.work();
    await storeElsewhere(url, named(30));
    const jobs = await untilDrained(pool);
    expect(jobs.filter(({ state, attempt }) => state !== "done" || attempt !== 1)).toEqual([]);
    expect(seen).toEqual(Array.from({ length: 10 }, () => ({ note: "a" })));
    const { rows } = await pool.query("select note, count(*)::int as n from ledger group by 1 order by 1");
    expect(rows).toEqual([
      { note: "a", n: 20 },
      { note: "b", n: 10 },
    ]);
  },
);

const FAULTS = [
  { what: "a constraint that is checked at the end", text: "insert into twice values (1)", code: "23505" },
  { what: "an error like that of a fence by hand", text: "select 1 / 0", code: "22012" },
  { what: "a text that is no statement", text: "select from where", code: "42601" },
];

test.each(FAULTS.flatMap((fault) => WAYS.map((options) => ({ ...fault, options }))))(
  "$what fails its own handler and nobody else's; shared: $options.sharedCommit",
  async ({ text, code, options }) => {
    const { url, pool, entries } = await withLedger();
    await pool.query(`create table twice (n int unique deferrable initially deferred);
      insert into twice values (1)`);
    const { ukemi } = makeUkemi(url, { concurrency: 20, handlerConnectionsMax: 2 });
    ukemi.on(
      "stripe",
      TYPE,
      ({ tx, event }) => {
        tx.send({ name: "entry", text: "insert into ledger values ($1)", values: [event.id] });
        // its name is new to every connection, and never becomes known
        if (event.id === "evt_3") tx.send({ name: "fault", text });
      },
      options,
    );
    await ukemi.work();
    await storeElsewhere(url, named(12));
    const jobs = await untilDrained(pool);
    const others = jobs.filter(({ event_id }) => event_id !== "evt_3");
    expect(others.filter(({ state, attempt }) => state !== "done" || attempt !== 1)).toEqual([]);
    expect(jobs.find(({ event_id }) => event_id === "evt_3")).toMatchObject({
      state: "dead",
      attempt: 3,
      error_class: `DatabaseError ${code}`,
    });
    expect(await entries()).toEqual(
      named(12)
        .filter((id) => id !== "evt_3")
        .toSorted(),
    );
  },
);

test.each(WAYS)(
  "a connection that is lost on the way burns no attempt; shared: $sharedCommit",
  async (options) => {
    const { url, pool, entries } = await withLedger();
    // the first of them ends its own connection, before the commit and in the middle of everything
    await pool.query(`
    create sequence fatal;
    create function cut_once() returns trigger language plpgsql as $$
      begin
        if nextval('fatal') = 1 then perform pg_terminate_backend(pg_backend_pid()); end if;
        return null;
      end $$;
    create trigger cut_once after insert on ledger for each row execute function cut_once()`);
    const { ukemi } = makeUkemi(url, { concurrency: 20, handlerConnectionsMax: 2 });
    ukemi.on(
      "stripe",
      TYPE,
      ({ tx, event }) => tx.send("insert into ledger values ($1)", [event.id]),
      options,
    );
    await ukemi.work();
    await storeElsewhere(url, named(12));
    const jobs = await untilDrained(pool);
    expect(jobs.filter(({ state, attempt }) => state !== "done" || attempt !== 1)).toEqual([]);
    expect(await entries()).toEqual(named(12).toSorted());
  },
);

test("one that waits behind a statement that fails, and that another did not wait for, is not to blame", async () => {
  const { url, pool, entries } = await withLedger();
  const { ukemi } = makeUkemi(url, { concurrency: 20 });
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event }) => {
      if (event.id === "evt_0") return tx.send("select 1 / 0");
      await tx.query("insert into ledger values ($1)", [event.id]);
    },
    { sharedCommit: true, ...RETRY },
  );
  await ukemi.work();
  await storeElsewhere(url, named(12));
  const jobs = await untilDrained(pool);
  const others = jobs.filter(({ event_id }) => event_id !== "evt_0");
  expect(others.filter(({ state, attempt }) => state !== "done" || attempt !== 1)).toEqual([]);
  expect(await entries()).toEqual(named(12).slice(1).toSorted());
});

test("a handler that is stopped while it waits for a connection leaves none behind", async () => {
  const { url, pool, entries } = await withLedger();
  const { ukemi, lines } = makeUkemi(url, { concurrency: 4, handlerConnectionsMax: 1, timeLimitMs: 300 });
  const busy = held<void>();
  ukemi.on(
    "stripe",
    "charge.succeeded",
    async ({ tx }) => {
      await tx.query("select 1");
      await busy.promise; // holds the only connection past the time of the others
    },
    { timeLimitMs: 20_000 },
  );
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event }) => void (await tx.query("insert into ledger values ($1)", [event.id])),
    { sharedCommit: true, retry: { retries: 10, delaysMs: [200] } },
  );
  const finds = (text: string) => async () => (await pool.query(text)).rowCount! > 0;
  await ukemi.work();
  await storeElsewhere(url, ["evt_holder"], { type: "charge.succeeded" });
  const HELD = `select from pg_stat_activity
    where datname = current_database() and application_name = 'ukemi handler' and state = 'idle in transaction'`;
  await until(finds(HELD), "the connection to be held");
  await storeElsewhere(url, named(3));
  await until(
    () => lines().some(({ outcome }) => outcome === "retry" || outcome === "returned"),
    "a try to be stopped",
  );
  busy.resolve(undefined);
  const jobs = await untilDrained(pool);
  expect(jobs.map(({ state }) => state)).toEqual(["done", "done", "done", "done"]);
  expect(await entries()).toEqual(named(3));
});

test("what handlers of one event send makes it a success once", async () => {
  const { url, pool, entries } = await withLedger();
  const { ukemi } = makeUkemi(url, { concurrency: 20 });
  for (const options of WAYS) {
    const name = options.sharedCommit ? "shared" : "own";
    ukemi.on(
      "stripe",
      TYPE,
      ({ tx, event, audit }) => {
        tx.send("insert into ledger values ($1)", [event.id]);
        event.link({ payment: `${name}:${event.id}` });
        void audit("noted", { target: name });
      },
      { ...options, name },
    );
  }
  await ukemi.work();
  await storeElsewhere(url, named(10));
  await untilDrained(pool);
  expect((await entries()).length).toBe(20);
  const { rows } = await pool.query(`
    select (select count(*) from ukemi.event_outcomes where status = 'success')::int as outcomes,
      (select count(*) from ukemi.audit_log where action = 'noted')::int as audits,
      (select count(*) from ukemi.event_refs)::int as refs`);
  expect(rows).toEqual([{ outcomes: 10, audits: 20, refs: 20 }]);
});
