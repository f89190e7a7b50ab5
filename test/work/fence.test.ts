// Promise 2: what a handler writes through tx and the completion of its job are one commit, fenced by the lease.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { held } from "../support/held.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";
import { until } from "../support/until.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { aborted } from "../support/aborted.ts";

const TYPE = "payment_intent.succeeded";
const FAST = { retry: { retries: 2, delaysMs: [20] } };

async function withLedger(): Promise<{ url: string; pool: Pool; entries: () => Promise<number> }> {
  const { url, pool } = await createDatabase();
  await pool.query("create table ledger (event text not null, note text)");
  const entries = async () =>
    (await pool.query<{ n: number }>("select count(*)::int as n from ledger")).rows[0]!.n;
  return { url, pool, entries };
}

/** Takes the lease away as a rescuer would. */
const takeAway = (pool: Pool) =>
  pool.query("update ukemi.jobs set lease_token = gen_random_uuid() where state = 'running'");

test("writes nothing of a handler whose lease was taken away", async () => {
  const { url, pool, entries } = await withLedger();
  const { ukemi, lines } = makeUkemi(url);
  ukemi.on("stripe", TYPE, async ({ tx, event, audit }) => {
    await tx.query("insert into ledger values ($1)", [event.id]);
    await audit("entry.written");
    await takeAway(pool);
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await until(() => lines().some((line) => line.outcome === "lost"), "the try to be lost");
  expect(await entries()).toBe(0);
  expect((await pool.query("select from ukemi.audit_log")).rowCount).toBe(0);
  expect((await readJobs(pool))[0]).toMatchObject({ state: "running", attempt: 0 });
});

test("does not settle a job without tx whose lease was taken away", async () => {
  const { url, pool } = await withLedger();
  const { ukemi, lines } = makeUkemi(url);
  ukemi.on("stripe", TYPE, () => takeAway(pool));
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await until(() => lines().some((line) => line.outcome === "lost"), "the try to be lost");
  expect((await readJobs(pool))[0]).toMatchObject({ state: "running", attempt: 0 });
});

test("rolls back the handler's writes when the audit cannot be written, and succeeds when it can (C4)", async () => {
  const { url, pool, entries } = await withLedger();
  await pool.query(`create function full_disk() returns trigger language plpgsql as $$
    begin raise exception 'no space left' using errcode = 'disk_full'; end $$;
    create trigger full_disk before insert on ukemi.audit_log for each row execute function full_disk()`);
  const { ukemi, lines } = makeUkemi(url);
  ukemi.on("stripe", TYPE, async ({ tx, event, audit }) => {
    await tx.query("insert into ledger values ($1)", [event.id]);
    await audit("entry.written");
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await until(() => lines().some((line) => line.outcome === "returned"), "a try to be given back");
  expect(await entries()).toBe(0);
  await pool.query("drop trigger full_disk on ukemi.audit_log");
  const [job] = await untilDrained(pool);
  // the database was at fault, so no attempt is burnt, however often it was tried
  expect(job).toMatchObject({ state: "done", attempt: 1 });
  expect(await entries()).toBe(1);
  expect((await pool.query("select from ukemi.audit_log")).rowCount).toBe(1);
});

test("counts an audit line that the database refuses as a failed try", async () => {
  const { url, pool, entries } = await withLedger();
  await pool.query(`create function no_entry() returns trigger language plpgsql as $$
    begin if new.role = 'handler' then raise exception 'no entry'; end if; return new; end $$;
    create trigger no_entry before insert on ukemi.audit_log for each row execute function no_entry()`);
  const { ukemi } = makeUkemi(url);
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event, audit }) => {
      await tx.query("insert into ledger values ($1)", [event.id]);
      await audit("entry.written");
    },
    FAST,
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  expect((await untilDrained(pool))[0]).toMatchObject({ state: "dead", attempt: 3, death: "exhausted" });
  expect(await entries()).toBe(0);
});

test("does not commit half of a handler that caught a failed statement", async () => {
  const { url, pool, entries } = await withLedger();
  const { ukemi } = makeUkemi(url);
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event }) => {
      await tx.query("insert into ledger values ($1)", [event.id]);
      await tx.query("insert into ledger values (null)").catch(() => {});
    },
    FAST,
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  const [job] = await untilDrained(pool);
  expect(job).toMatchObject({ state: "dead", error_class: "DatabaseError 23502" });
  expect(await entries()).toBe(0);
});

test("takes a constraint that fails at COMMIT for a failed try", async () => {
  const { url, pool, entries } = await withLedger();
  await pool.query(`create table parents (id text primary key);
    create table children (parent text references parents deferrable initially deferred)`);
  const { ukemi } = makeUkemi(url);
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event }) => {
      await tx.query("insert into ledger values ($1)", [event.id]);
      await tx.query("insert into children values ('nobody')");
    },
    FAST,
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  expect((await untilDrained(pool))[0]).toMatchObject({
    state: "dead",
    attempt: 3,
    error_class: "DatabaseError 23503",
  });
  expect(await entries()).toBe(0);
});

test.each(["commit", "rollback", "  COMMIT work", "end", "abort"])(
  "refuses a handler's own %s, and writes nothing",
  async (statement) => {
    const { url, pool, entries } = await withLedger();
    const { ukemi } = makeUkemi(url);
    ukemi.on(
      "stripe",
      TYPE,
      async ({ tx, event }) => {
        await tx.query("insert into ledger values ($1)", [event.id]);
        await tx.query(statement);
      },
      { retry: { retries: 0, delaysMs: [] } },
    );
    await ukemi.work();
    await storeElsewhere(url, ["evt_1"]);
    expect((await untilDrained(pool))[0]).toMatchObject({
      state: "dead",
      error_class: "UkemiError transaction_over",
    });
    expect(await entries()).toBe(0);
  },
);

test("buries a job whose handler ended the transaction behind our back: it must not commit again and again", async () => {
  const { url, pool, entries } = await withLedger();
  const { ukemi } = makeUkemi(url);
  ukemi.on("stripe", TYPE, async ({ tx }) => {
    await tx.query("insert into ledger values ('outside the fence'); commit; begin");
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  expect((await untilDrained(pool))[0]).toMatchObject({
    state: "dead",
    death: "terminal",
    error_message: "the handler ended its own transaction",
  });
  expect(await entries()).toBe(1);
});

test("lets a nested transaction be rolled back without the rest", async () => {
  const { url, pool } = await withLedger();
  const { ukemi } = makeUkemi(url);
  ukemi.on("stripe", TYPE, async ({ tx, event }) => {
    await tx.query("insert into ledger values ($1, 'kept')", [event.id]);
    await tx.query("begin");
    await tx.query("insert into ledger values ($1, 'undone')", [event.id]);
    await tx.query("rollback");
    await tx.query("begin");
    await tx.query("insert into ledger values ($1, 'kept too')", [event.id]);
    await tx.query("commit");
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await untilDrained(pool);
  const { rows } = await pool.query("select note from ledger order by note");
  expect(rows).toEqual([{ note: "kept" }, { note: "kept too" }]);
});

test("stops a handler at its time limit; what it does afterwards is refused", async () => {
  const { url, pool, entries } = await withLedger();
  const { ukemi } = makeUkemi(url);
  const late: unknown[] = [];
  let heard = 0;
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event, signal }) => {
      // on a slow machine the time is over before this is written
      await tx.query("insert into ledger values ($1)", [event.id]).catch(() => {});
      await aborted(signal);
      heard += 1;
      await tx
        .query("insert into ledger values ($1)", [event.id])
        .catch((error: unknown) => late.push(error));
    },
    { ...FAST, timeLimitMs: 100 },
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  expect((await untilDrained(pool))[0]).toMatchObject({
    state: "dead",
    attempt: 3,
    error_class: "TimeLimit",
  });
  await until(() => late.length === 3, "the late statements to be refused");
  expect(heard).toBe(3);
  expect(String(late[0])).toContain("The transaction is over");
  expect(await entries()).toBe(0);
});

test("a transaction that was not used cannot be begun by what its handler left running: the connection stays free", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url, { handlerConnectionsMax: 1 });
  const late: string[] = [];
  const isDone = held<void>();
  ukemi.on("stripe", "payment_intent.succeeded", ({ tx }) => {
    void isDone.promise.then(() => tx.query("select 1")).catch((error: unknown) => late.push(String(error)));
  });
  ukemi.on("stripe", "charge.succeeded", ({ tx }) => tx.query("select 1"));
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await untilDrained(pool);
  isDone.resolve();
  await until(() => late.length === 1, "the late statement to be refused");
  expect(late[0]).toContain("The transaction is over: its handler has ended");
  await storeElsewhere(url, ["evt_2"], { type: "charge.succeeded" });
  expect((await untilDrained(pool)).map(({ state }) => state)).toEqual(["done", "done"]);
});

test("counts a transaction left idle beyond the lease against the handler, not the database", async () => {
  const { url, pool, entries } = await withLedger();
  const { ukemi } = makeUkemi(url, { leaseMs: 900 });
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event }) => {
      await tx.query("insert into ledger values ($1)", [event.id]);
      await new Promise((resolve) => setTimeout(resolve, 1200));
    },
    { retry: { retries: 0, delaysMs: [] } },
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  expect((await untilDrained(pool))[0]).toMatchObject({ state: "dead", attempt: 1, death: "exhausted" });
  expect(await entries()).toBe(0);
});

test("does not burn an attempt where the completion of a handler without tx cannot be written", async () => {
  const { url, pool } = await withLedger();
  await pool.query(`create function away() returns trigger language plpgsql as $$
    begin raise exception 'no space left' using errcode = 'disk_full'; end $$;
    create trigger away before update on ukemi.jobs for each row
      when (new.state = 'done') execute function away()`);
  const { ukemi, lines } = makeUkemi(url);
  ukemi.on("stripe", TYPE, () => {}, { retry: { retries: 0 } });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await until(() => lines().some((line) => line.outcome === "returned"), "a try to be given back");
  await pool.query("drop trigger away on ukemi.jobs");
  expect((await untilDrained(pool))[0]).toMatchObject({ state: "done", attempt: 1, recoveries: 0 });
});

test("statements that a handler has named are there for the next, also after it left settings and locks behind", async () => {
  const { url, pool } = await withLedger();
  const { ukemi } = makeUkemi(url, { handlerConnectionsMax: 1, concurrency: 1 });
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx }) => {
      await tx.query({ name: "one", text: "select $1::int as one", values: [1] });
      await tx.query("set app.tenant = 'somebody'");
      await tx.query("select pg_advisory_lock(4711)");
    },
    FAST,
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1", "evt_2", "evt_3"]);
  const jobs = await untilDrained(pool);
  expect(jobs.map(({ state, attempt }) => [state, attempt])).toEqual(jobs.map(() => ["done", 1]));
});

test("a handler's time limit bounds its own statements, and not those of the next on the same connection", async () => {
  const { url, pool } = await withLedger();
  const { ukemi } = makeUkemi(url, { handlerConnectionsMax: 1, concurrency: 1 });
  const seen: unknown[] = [];
  const look = async ({ tx }: { tx: { query(text: string): Promise<{ rows: unknown[] }> } }) => {
    const { rows } = await tx.query(
      `select current_setting('statement_timeout') as statement,
         current_setting('idle_in_transaction_session_timeout') <> '0' as bounded`,
    );
    seen.push(rows[0]);
    if (seen.length === 2) throw new Error("rolled back: the bounds stay");
  };
  ukemi.on("stripe", TYPE, look, { ...FAST, timeLimitMs: 2000 });
  ukemi.on("stripe", "invoice.paid", look, { ...FAST, timeLimitMs: 3000 });
  await ukemi.work();
  for (const type of [TYPE, TYPE, "invoice.paid", TYPE]) {
    await storeElsewhere(url, [`evt_${seen.length}_${type}`], { type });
    await untilDrained(pool);
  }
  const bounded = true;
  expect(seen).toEqual([
    { statement: "3s", bounded },
    { statement: "3s", bounded },
    { statement: "3s", bounded },
    { statement: "4s", bounded },
    { statement: "3s", bounded },
  ]);
});

test("leaves nothing of a handler's session to the next: settings, roles, locks", async () => {
  const { url, pool } = await withLedger();
  const { ukemi } = makeUkemi(url, { handlerConnectionsMax: 1, concurrency: 1 });
  const seen: unknown[] = [];
  ukemi.on(
    "stripe",
    TYPE,
    async ({ tx, event }) => {
      const { rows } = await tx.query(
        `select current_setting('app.tenant', true) as tenant,
        (select count(*)::int from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks`,
      );
      seen.push(rows[0]);
      await tx.query("set app.tenant = 'somebody'");
      await tx.query("select pg_advisory_lock(4711)");
      if (event.id === "evt_2") throw new Error("also after a rollback");
    },
    FAST,
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1", "evt_2", "evt_3"]);
  await untilDrained(pool);
  for (const left of seen) expect(left).toEqual({ tenant: expect.toBeOneOf([null, ""]) as string, locks: 0 });
});

test("commits what a handler sent without waiting for it, in order, together with its completion", async () => {
  const { url, pool } = await withLedger();
  const { ukemi } = makeUkemi(url, { handlerConnectionsMax: 2 });
  ukemi.on("stripe", TYPE, ({ tx, event }) => {
    tx.send("insert into ledger values ($1, 'first')", [event.id]);
    tx.send({ text: "update ledger set note = note || ', second' where event = $1", values: [event.id] });
  });
  await ukemi.work();
  const events = Array.from({ length: 40 }, (_, nth) => `evt_${nth}`);
  await storeElsewhere(url, events);
  const jobs = await untilDrained(pool);
  expect(jobs.every(({ state, attempt }) => state === "done" && attempt === 1)).toBe(true);
  const { rows } = await pool.query("select note, count(*)::int as n from ledger group by 1");
  expect(rows).toEqual([{ note: "first, second", n: 40 }]);
});

test.each([
  ["fails", "insert into ledger values (null)", "DatabaseError 23502"],
  ["is refused", "commit", "UkemiError transaction_over"],
])("a statement that %s fails the try, though nobody waited for it", async (_what, text, error_class) => {
  const { url, pool, entries } = await withLedger();
  const { ukemi } = makeUkemi(url);
  for (const waits of [false, true]) {
    ukemi.on(
      "stripe",
      TYPE,
      async ({ tx, event }) => {
        tx.send("insert into ledger values ($1)", [event.id]);
        tx.send(text);
        if (waits) await tx.query("insert into ledger values ($1)", [event.id]);
      },
      { ...FAST, name: waits ? "waits" : "does not wait" },
    );
  }
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  const jobs = await untilDrained(pool);
  expect(jobs).toMatchObject([
    { state: "dead", attempt: 3, error_class },
    { state: "dead", attempt: 3, error_class },
  ]);
  expect(await entries()).toBe(0);
});

test("writes nothing that was sent by a handler whose lease was taken away", async () => {
  const { url, pool, entries } = await withLedger();
  const { ukemi, lines } = makeUkemi(url);
  ukemi.on("stripe", TYPE, async ({ tx, event }) => {
    await takeAway(pool);
    tx.send("insert into ledger values ($1)", [event.id]);
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await until(() => lines().some((line) => line.outcome === "lost"), "the try to be lost");
  expect(await entries()).toBe(0);
});
