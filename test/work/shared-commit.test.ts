// Handlers that share a commit: every promise of a handler with its own transaction holds for them too.
import { expect, onTestFinished, test } from "vitest";
import type { Pool } from "../../src/storage/postgres.ts";
import type { EventContext } from "../../src/work/context.ts";
import { createDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained, type JobRow } from "../support/work.ts";

const TYPE = "payment_intent.succeeded";
const SHARED = { sharedCommit: true, retry: { retries: 2, delaysMs: [20] } };

interface Ledger {
  readonly url: string;
  readonly pool: Pool;
  /** The events in the ledger, in order; one that was written twice is there twice. */
  entries(): Promise<string[]>;
  /** How many transactions wrote them. */
  commits(): Promise<number>;
}

async function withLedger(): Promise<Ledger> {
  const { url, pool } = await createDatabase();
  await pool.query(
    "create table ledger (event text not null, note text, by xid8 not null default pg_current_xact_id())",
  );
  return {
    url,
    pool,
    async entries() {
      const { rows } = await pool.query<{ event: string }>("select event from ledger order by event");
      return rows.map((row) => row.event);
    },
    async commits() {
      const { rows } = await pool.query<{ n: number }>("select count(distinct by)::int as n from ledger");
      return rows[0]!.n;
    },
  };
}

const named = (count: number) =>
  Array.from({ length: count }, (_, nth) => `evt_${String(nth).padStart(3, "0")}`);

/** Stores so many events at once, and works on them with a handler that shares its commits until every job has ended. */
async function drain(
  url: string,
  pool: Pool,
  count: number,
  handler: (context: EventContext<{ id: string }>) => unknown,
): Promise<{ events: string[]; jobs: JobRow[] }> {
  const events = named(count);
  const { ukemi } = makeUkemi(url, { concurrency: count });
  ukemi.on("stripe", TYPE, handler, SHARED);
  await ukemi.work();
  await storeElsewhere(url, events);
  return { events, jobs: await untilDrained(pool) };
}

test("many handlers share few commits, and each is done once", async () => {
  const { url, pool, entries, commits } = await withLedger();
  let running = 0;
  let most = 0;
  const { events, jobs } = await drain(url, pool, 120, async ({ tx, event }) => {
    running += 1;
    most = Math.max(most, running);
    await tx.query("insert into ledger values ($1)", [event.id]);
    running -= 1;
  });
  expect(jobs.every(({ state, attempt }) => state === "done" && attempt === 1)).toBe(true);
  expect(await entries()).toEqual(events);
  expect(await commits()).toBeLessThan(30);
  expect(most).toBeLessThanOrEqual(4); // one on each lane
});

test("what handlers say beside their writes is committed with them", async () => {
  const { url, pool } = await withLedger();
  const events = named(20);
  const { ukemi } = makeUkemi(url, { concurrency: 20 });
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event, audit }) => {
      await tx.query("insert into ledger values ($1)", [event.id]);
      event.link({ billing: `bill-${event.id}`, office: `office-${event.id}`, payment: `pay-${event.id}` });
      await audit("ledger.written", { target: event.id });
    },
    SHARED,
  );
  await ukemi.work();
  await storeElsewhere(url, events);
  await untilDrained(pool);
  const { rows } = await pool.query(`
    select e.event_id, o.status, o.billing_id, o.office_id,
      (select count(*)::int from ukemi.event_refs r where r.event = e.id) as refs,
      (select count(*)::int from ukemi.audit_log a where a.target = e.event_id and a.role = 'handler') as audits
    from ukemi.events e join ukemi.event_outcomes o on o.event = e.id order by 1`);
  expect(rows).toEqual(
    events.map((id) => ({
      event_id: id,
      status: "success",
      billing_id: `bill-${id}`,
      office_id: `office-${id}`,
      refs: 3,
      audits: 1,
    })),
  );
});

test("one poison among fifty fails alone", async () => {
  const { url, pool, entries } = await withLedger();
  const events = named(50);
  const { ukemi, lines } = makeUkemi(url, { concurrency: 50 });
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event }) => {
      await tx.query("insert into ledger values ($1)", [event.id]);
      if (event.id === "evt_025") throw new Error("poison");
    },
    SHARED,
  );
  await ukemi.work();
  await storeElsewhere(url, events);
  const jobs = await untilDrained(pool);
  expect(jobs.filter(({ state }) => state !== "done")).toMatchObject([
    { event_id: "evt_025", state: "dead", death: "exhausted", attempt: 3, error_message: "poison" },
  ]);
  expect(await entries()).toEqual(events.filter((id) => id !== "evt_025"));
  // those of the poison: nobody else was tried twice
  expect(lines().filter(({ outcome }) => outcome === "retry").length).toBe(2);
});

test("a failed statement that a handler caught, or did not wait for, is its own failure", async () => {
  const { url, pool, entries } = await withLedger();
  const { events, jobs } = await drain(url, pool, 30, async ({ tx, event }) => {
    await tx.query("insert into ledger values ($1)", [event.id]);
    if (event.id === "evt_007") await tx.query("insert into ledger values (null)").catch(() => {});
    if (event.id === "evt_013") void tx.query("insert into ledger values (null)").catch(() => {});
  });
  expect(jobs.filter(({ state }) => state !== "done")).toMatchObject([
    { event_id: "evt_007", state: "dead", error_class: "DatabaseError 23502" },
    { event_id: "evt_013", state: "dead", error_class: "DatabaseError 23502" },
  ]);
  expect(await entries()).toEqual(events.filter((id) => id !== "evt_007" && id !== "evt_013"));
});

test("a constraint that fails at COMMIT fails the handler it belongs to, and no other", async () => {
  const { url, pool, entries } = await withLedger();
  await pool.query(`create table parents (id text primary key);
    create table children (parent text references parents deferrable initially deferred)`);
  const { events, jobs } = await drain(url, pool, 30, async ({ tx, event }) => {
    await tx.query("insert into ledger values ($1)", [event.id]);
    if (event.id === "evt_011") await tx.query("insert into children values ('nobody')");
  });
  expect(jobs.filter(({ state }) => state !== "done")).toMatchObject([
    { event_id: "evt_011", state: "dead", attempt: 3, error_class: "DatabaseError 23503" },
  ]);
  expect(jobs.filter(({ state }) => state === "done").every(({ attempt }) => attempt === 1)).toBe(true);
  expect(await entries()).toEqual(events.filter((id) => id !== "evt_011"));
});

test("a lease that was taken away loses its own handler's writes, and nobody else's", async () => {
  const { url, pool, entries } = await withLedger();
  const events = named(20);
  const { ukemi, lines } = makeUkemi(url, { concurrency: 20 });
  let taken = false;
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event, job }) => {
      await tx.query("insert into ledger values ($1)", [event.id]);
      if (event.id !== "evt_004" || taken) return;
      taken = true;
      await pool.query("update ukemi.jobs set lease_token = gen_random_uuid() where id = $1", [job.id]);
    },
    SHARED,
  );
  await ukemi.work();
  await storeElsewhere(url, events);
  await until(() => lines().some((line) => line.outcome === "lost"), "the try to be lost");
  await until(
    async () => (await readJobs(pool)).filter(({ state }) => state === "done").length === 19,
    "the others",
  );
  expect(await entries()).toEqual(events.filter((id) => id !== "evt_004"));
});

test.each([
  ["a setting", "set local statement_timeout = 1"],
  ["a setting by function", "select set_config('statement_timeout', '1', true)"],
  ["an advisory lock", "select pg_advisory_xact_lock(1)"],
  ["a lock of a table", "lock table ledger"],
  ["two statements in one", "select 1; commit"],
  ["an end of the transaction", "commit"],
  ["our own savepoint", "rollback to savepoint ukemi_part"],
])("refuses %s, and its neighbours know nothing of it", async (_what, text) => {
  const { url, pool, entries } = await withLedger();
  const { events, jobs } = await drain(url, pool, 10, async ({ tx, event }) => {
    if (event.id === "evt_003") await tx.query(text);
    await tx.query("insert into ledger values ($1)", [event.id]);
  });
  expect(jobs.filter(({ state }) => state !== "done")).toMatchObject([
    { event_id: "evt_003", state: "dead", attempt: 3, error_class: "UkemiError transaction_over" },
  ]);
  expect(await entries()).toEqual(events.filter((id) => id !== "evt_003"));
});

test.each(["waits for", "does not wait for"])(
  "handlers that lock the same rows in opposite order all end, where each %s its statements",
  async (how) => {
    const { url, pool } = await withLedger();
    await pool.query(
      "create table hot (id int primary key, n int not null); insert into hot select n, 0 from generate_series(0, 3) n",
    );
    const events = named(200);
    const { ukemi } = makeUkemi(url, { concurrency: 200 });
    ukemi.on(
      "stripe",
      TYPE,
      async ({ tx, event }) => {
        const nth = Number(event.id.slice(4));
        for (const id of [nth % 4, 3 - (nth % 4)]) {
          const statement = { text: "update hot set n = n + 1 where id = $1", values: [id] };
          if (how === "waits for") await tx.query(statement);
          else tx.send(statement);
        }
      },
      SHARED,
    );
    await ukemi.work();
    await storeElsewhere(url, events);
    const jobs = await untilDrained(pool);
    expect(jobs.every(({ state }) => state === "done")).toBe(true);
    const { rows } = await pool.query<{ n: number }>("select sum(n)::int as n from hot");
    expect(rows[0]!.n).toBe(400);
  },
);

test("a row that somebody else holds is waited for alone, and holds up nobody", async () => {
  const { url, pool, entries } = await withLedger();
  await pool.query("create table held (id int primary key); insert into held values (1)");
  const holder = await pool.connect();
  onTestFinished(() => holder.release());
  await holder.query("begin; select from held for update");
  const events = named(40);
  const { ukemi } = makeUkemi(url, { concurrency: 40 });
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event }) => {
      if (event.id === "evt_000") await tx.query("update held set id = 1");
      await tx.query("insert into ledger values ($1)", [event.id]);
    },
    SHARED,
  );
  await ukemi.work();
  await storeElsewhere(url, events);
  await until(async () => (await entries()).length === 39, "the others");
  await holder.query("commit");
  const jobs = await untilDrained(pool);
  expect(jobs.every(({ state, attempt }) => state === "done" && attempt === 1)).toBe(true);
  expect(await entries()).toEqual(events);
});

test("a handler that does not end in time is cut off; those that shared with it are done", async () => {
  const { url, pool, entries } = await withLedger();
  const events = named(10);
  const { ukemi } = makeUkemi(url, { concurrency: 10, timeLimitMs: 300 });
  const late: unknown[] = [];
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event, signal }) => {
      await tx.query("insert into ledger values ($1)", [event.id]);
      if (event.id !== "evt_005") return;
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      await tx.query("insert into ledger values ('late')").catch((error: unknown) => late.push(error));
    },
    SHARED,
  );
  await ukemi.work();
  await storeElsewhere(url, events);
  const jobs = await untilDrained(pool);
  expect(jobs.filter(({ state }) => state !== "done")).toMatchObject([
    { event_id: "evt_005", state: "dead", error_class: "TimeLimit" },
  ]);
  expect(await entries()).toEqual(events.filter((id) => id !== "evt_005"));
  expect(late.length).toBe(3);
});

test("two handlers of one event that share a commit make it a success", async () => {
  const { url, pool, entries } = await withLedger();
  const events = named(20);
  const { ukemi } = makeUkemi(url, { concurrency: 40 });
  for (const name of ["first", "second"]) {
    ukemi.on(
      "stripe",
      TYPE,
      async ({ tx, event }) => void (await tx.query("insert into ledger values ($1, $2)", [event.id, name])),
      { ...SHARED, name },
    );
  }
  await ukemi.work();
  await storeElsewhere(url, events);
  await untilDrained(pool);
  expect((await entries()).length).toBe(40);
  const { rows } = await pool.query("select status, count(*)::int as n from ukemi.event_outcomes group by 1");
  expect(rows).toEqual([{ status: "success", n: 20 }]);
});

test("an inner transaction that a handler rolls back takes nothing else with it", async () => {
  const { url, pool, entries } = await withLedger();
  const { events, jobs } = await drain(url, pool, 10, async ({ tx, event }) => {
    await tx.query("insert into ledger values ($1)", [event.id]);
    const inner = await tx.pool.connect();
    await inner.query("begin");
    await inner.query("insert into ledger values (null)").catch(() => {});
    await inner.query("rollback");
  });
  expect(jobs.every(({ state, attempt }) => state === "done" && attempt === 1)).toBe(true);
  expect(await entries()).toEqual(events);
});

test("tasks that are asked for in a shared transaction are there with its commit", async () => {
  const { url, pool, entries } = await withLedger();
  const events = named(20);
  const { ukemi } = makeUkemi(url, { concurrency: 20 });
  ukemi.task(
    "follow-up",
    async ({ payload, tx }) => {
      await tx.query("insert into ledger values ($1)", [`after ${(payload as { of: string }).of}`]);
    },
    SHARED,
  );
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event, job }) => {
      await ukemi.enqueue(tx, "follow-up", { of: event.id });
      if (event.id === "evt_001" && job.attempt === 1) throw new Error("once");
    },
    SHARED,
  );
  await ukemi.work();
  await storeElsewhere(url, events);
  expect((await untilDrained(pool)).every(({ state }) => state === "done")).toBe(true);
  expect(await entries()).toEqual(events.map((id) => `after ${id}`));
});

test("a shared commit is flushed, whatever the role's settings say", async () => {
  const { url, pool } = await withLedger();
  await pool.query(
    "alter table ledger add column flushed text default current_setting('synchronous_commit')",
  );
  await pool.query(`create function note_flush() returns trigger language plpgsql as $$
    begin update ledger set flushed = current_setting('synchronous_commit'); return null; end $$;
    create constraint trigger note_flush after insert on ledger deferrable initially deferred
      for each row execute function note_flush()`);
  const { rows } = await pool.query<{ name: string }>("select current_database() as name");
  await pool.query(`alter database "${rows[0]!.name}" set synchronous_commit = off`);
  const { ukemi } = makeUkemi(url);
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event }) => void (await tx.query("insert into ledger values ($1)", [event.id])),
    SHARED,
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await untilDrained(pool);
  expect((await pool.query("select flushed from ledger")).rows).toEqual([{ flushed: "on" }]);
});

test("is refused where a commit cannot be shared", async () => {
  const { url } = await withLedger();
  const { ukemi } = makeUkemi(url);
  expect(() => ukemi.on("stripe", TYPE, () => {}, { sharedCommit: true, queue: "inline" })).toThrow("share");
  expect(() => ukemi.on("stripe", TYPE, () => {}, { sharedCommit: "yes" as never })).toThrow("true or false");
});

test("statements that nobody waits for are committed in the order in which they were sent", async () => {
  const { url, pool, entries, commits } = await withLedger();
  const { events, jobs } = await drain(url, pool, 120, ({ tx, event }) => {
    tx.send("insert into ledger values ('wrong')");
    tx.send("update ledger set event = $1 where event = 'wrong'", [event.id]);
  });
  expect(jobs.every(({ state, attempt }) => state === "done" && attempt === 1)).toBe(true);
  expect(await entries()).toEqual(events);
  expect(await commits()).toBeLessThan(30);
});

test("what is refused in a shared transaction is refused alone, too: nobody can tell which it will be", async () => {
  const { url, pool, entries } = await withLedger();
  const { jobs } = await drain(url, pool, 2, async ({ tx, event }) => {
    // the first takes the second along, which is tried alone then
    if (event.id === "evt_000") return tx.send("insert into ledger values (null)");
    tx.send("set local statement_timeout = 10000");
    await tx.query("insert into ledger values ($1)", [event.id]);
  });
  expect(jobs).toMatchObject([
    { event_id: "evt_000", state: "dead", error_class: "DatabaseError 23502" },
    { event_id: "evt_001", state: "dead", error_class: "UkemiError transaction_over" },
  ]);
  expect(await entries()).toEqual([]);
});

test("a statement that fails and that nobody waited for fails its own handler, and no other", async () => {
  const { url, pool, entries } = await withLedger();
  const { events, jobs } = await drain(url, pool, 50, async ({ tx, event }) => {
    const nth = Number(event.id.slice(4));
    if (nth === 20) tx.send("insert into ledger values (null)");
    if (nth === 30) tx.send("set local statement_timeout = 1"); // refused
    if (nth % 3 === 0) await tx.query("insert into ledger values ($1)", [event.id]);
    else tx.send("insert into ledger values ($1)", [event.id]);
  });
  expect(jobs.filter(({ state }) => state !== "done")).toMatchObject([
    { event_id: "evt_020", state: "dead", attempt: 3, error_class: "DatabaseError 23502" },
    { event_id: "evt_030", state: "dead", attempt: 3, error_class: "UkemiError transaction_over" },
  ]);
  expect(jobs.filter(({ state }) => state === "done").every(({ attempt }) => attempt === 1)).toBe(true);
  expect(await entries()).toEqual(events.filter((id) => id !== "evt_020" && id !== "evt_030"));
});
