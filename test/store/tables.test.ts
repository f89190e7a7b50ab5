// What the tables themselves promise: append-only for everyone, months made ahead, views that never fail.
import { expect, inject, onTestFinished, test } from "vitest";
import { migrate, readMigrations } from "../../src/storage/migrate.ts";
import { openPool } from "../../src/storage/postgres.ts";
import { makeBodyMonths } from "../../src/storage/upkeep.ts";
import { createDatabase } from "../support/database.ts";
import { storeDirectly } from "../support/store.ts";
import { withDatabase } from "../support/url.ts";

test.each(["events", "event_bodies", "audit_log"])(
  "refuses every change to %s, from the owner too",
  async (name) => {
    const { url, pool } = await createDatabase();
    await storeDirectly(url, ["evt_1"]);
    await pool.query("insert into ukemi.audit_log (actor, role, action) values ('a', 'admin', 'test')");
    const column = { events: "type = 'x'", event_bodies: "headers = 'x'", audit_log: "action = 'x'" }[name];
    await expect(pool.query(`update ukemi.${name} set ${column}`)).rejects.toThrow(/append-only/);
    await expect(pool.query(`delete from ukemi.${name}`)).rejects.toThrow(/append-only/);
    await expect(pool.query(`truncate ukemi.${name} cascade`)).rejects.toThrow(/append-only/);
    const { rows } = await pool.query(`select count(*)::int as kept from ukemi.${name}`);
    expect(rows).toEqual([{ kept: 1 }]);
  },
);

test("refuses changes to a month of bodies addressed by its own name", async () => {
  const { url, pool } = await createDatabase();
  await storeDirectly(url, ["evt_1"]);
  const { rows } = await pool.query<{ month: string }>(
    "select 'ukemi.' || relname as month from ukemi.event_bodies b join pg_class c on c.oid = b.tableoid",
  );
  const month = rows[0]!.month;
  expect(month).toMatch(/^ukemi\.event_bodies_\d{6}$/);
  for (const statement of [`delete from ${month}`, `update ${month} set headers = ''`, `truncate ${month}`]) {
    await expect(pool.query(statement)).rejects.toThrow(/append-only/);
  }
});

test("refuses changes in a session that replays a replication stream, too", async () => {
  const { url, pool } = await createDatabase();
  await storeDirectly(url, ["evt_1"]);
  const client = await pool.connect();
  await client.query("set session_replication_role = replica");
  for (const name of ["events", "event_bodies"]) {
    await expect(client.query(`delete from ukemi.${name}`)).rejects.toThrow(/append-only/);
  }
  client.release(true);
});

test("refuses to truncate jobs, and asks those that go what they said in a session that replays a stream, too", async () => {
  const { url, pool } = await createDatabase();
  await pool.query("insert into ukemi.subscriptions (name, source, pattern) values ('h', 'stripe', '*')");
  await storeDirectly(url, ["evt_1"]);
  await pool.query("update ukemi.jobs set state = 'done', finished_at = ukemi.now()");
  const client = await pool.connect();
  for (const role of ["origin", "replica"]) {
    await client.query(`set session_replication_role = ${role}`);
    await expect(client.query("truncate ukemi.jobs")).rejects.toThrow(/append-only/);
  }
  await client.query("delete from ukemi.jobs");
  client.release(true);
  const { rows } = await pool.query("select status from ukemi.webhook_events");
  expect(rows).toEqual([{ status: "success" }]);
});

test("lets retention delete under its flag, which ends with the transaction", async () => {
  const { url, pool } = await createDatabase();
  await storeDirectly(url, ["evt_1", "evt_2"]);
  await pool.query(
    "begin; select set_config('ukemi.retention', 'on', true); delete from ukemi.event_bodies; commit",
  );
  await expect(pool.query("delete from ukemi.events")).rejects.toThrow(/append-only/);
  const { rows } = await pool.query("select count(*)::int as bodies from ukemi.event_bodies");
  expect(rows).toEqual([{ bodies: 0 }]);
});

test("stores an event whose month nobody made, and moves its body when the month is made", async () => {
  const { url, pool } = await createDatabase();
  await pool.query("update ukemi.clock set shift = '400 days'");
  await storeDirectly(url, ["evt_late"]);
  const whereIs = async () =>
    (
      await pool.query<{ part: string }>(
        "select relname as part from ukemi.event_bodies b join pg_class c on c.oid = b.tableoid",
      )
    ).rows[0]!.part;
  expect(await whereIs()).toBe("event_bodies_default");
  expect(await makeBodyMonths(pool, 2)).toBe(3);
  expect(await whereIs()).toMatch(/^event_bodies_\d{6}$/);
  expect(await makeBodyMonths(pool, 2)).toBe(0);
});

test.each(["Asia/Kolkata", "America/New_York", "Asia/Shanghai"])(
  "begins months at midnight UTC where the session's time zone is %s and its date style is odd",
  async (zone) => {
    const { pool, name } = await createDatabase({ empty: true });
    await pool.query(`alter database ${name} set datestyle = 'Postgres, MDY'`);
    await pool.query(`alter database ${name} set timezone = '${zone}'`);
    await pool.query("select 1"); // a new session has the settings
    const fresh = openPool(withDatabase(inject("adminUrl"), name), { max: 1 });
    onTestFinished(() => fresh.end());
    await migrate(fresh, await readMigrations());
    await fresh.query("set timezone = 'UTC'; set datestyle = 'ISO'"); // now to read the bounds without doubt
    const { rows } = await fresh.query<{ bound: string }>(`
      select pg_get_expr(relpartbound, oid) as bound from pg_class
      where relname ~ '^event_bodies_[0-9]{6}$'
        and extract(epoch from (regexp_match(pg_get_expr(relpartbound, oid), 'FROM \\(''(.*?)''\\)'))[1]::timestamptz)::bigint % 86400 <> 0`);
    expect(rows).toEqual([]);
  },
);

test("gives up making a month rather than block readers behind a long one", async () => {
  const { pool } = await createDatabase();
  const reader = await pool.connect();
  await reader.query(
    "begin; select count(*) from ukemi.webhook_events; select payload from ukemi.webhook_events",
  );
  await pool.query("update ukemi.clock set shift = '800 days'");
  await expect(makeBodyMonths(pool, 0)).rejects.toMatchObject({ code: "55P03" });
  await reader.query("commit");
  reader.release();
  expect(await makeBodyMonths(pool, 0)).toBe(1);
});

test("makes months once when several processes ask at the same time", async () => {
  const { pool } = await createDatabase();
  await pool.query("update ukemi.clock set shift = '800 days'");
  const made = await Promise.all(Array.from({ length: 4 }, () => makeBodyMonths(pool, 5)));
  expect(made.toSorted((a, b) => a - b)).toEqual([0, 0, 0, 6]);
});

test("shows every event in webhook_events, with a null payload where the body is not JSON that jsonb takes", async () => {
  const { url, pool } = await createDatabase();
  const bodies = {
    evt_json: '{"amount":500}',
    evt_nul: '{"text":"\\u0000"}',
    evt_surrogate: '{"text":"\\ud800"}',
    evt_text: "not json",
    evt_binary: Buffer.from([0xff, 0xfe, 0x00]),
    evt_number: '{"n":1e400000}',
    evt_empty: "",
    evt_deep: "[".repeat(100_000),
  };
  await storeDirectly(url, Object.keys(bodies), {
    body: (id) => Buffer.from(bodies[id as keyof typeof bodies]),
  });
  const { rows } = await pool.query(
    "select event_id, payload, status from ukemi.webhook_events order by event_id",
  );
  expect(rows).toEqual(
    Object.keys(bodies)
      .toSorted()
      .map((event_id) => ({
        event_id,
        payload: event_id === "evt_json" ? { amount: 500 } : null,
        status: "unrouted",
      })),
  );
});

test("lists dead jobs in failed_webhook_events by itself", async () => {
  const { url, pool } = await createDatabase();
  await pool.query("insert into ukemi.subscriptions (name, source, pattern) values ('h', 'stripe', '*')");
  await storeDirectly(url, ["evt_1", "evt_2"], { body: () => Buffer.from('{"a":1}') });
  await pool.query(
    `update ukemi.jobs set state = 'dead', death = 'exhausted', finished_at = ukemi.now(), error_message = 'no such payment'
     where event = (select id from ukemi.events where event_id = 'evt_1')`,
  );
  const { rows } = await pool.query(
    "select event_id, payload, error, created_at from ukemi.failed_webhook_events",
  );
  expect(rows).toEqual([
    { event_id: "evt_1", payload: { a: 1 }, error: "no such payment", created_at: expect.any(Date) },
  ]);
});

test.each([
  ["running without a lease", "state = 'running'"],
  ["done without an end", "state = 'done'"],
  ["an unknown state", "state = 'lost'"],
  ["more attempts than allowed", "attempt = 100"],
  ["ready with an end", "finished_at = ukemi.now()"],
])("refuses an impossible job: %s", async (_, change) => {
  const { url, pool } = await createDatabase();
  await pool.query("insert into ukemi.subscriptions (name, source, pattern) values ('h', 'stripe', '*')");
  await storeDirectly(url, ["evt_1"]);
  await expect(pool.query(`update ukemi.jobs set ${change}`)).rejects.toThrow(/violates check constraint/);
});

test("moves ukemi.now() for every session at once", async () => {
  const { pool } = await createDatabase();
  await pool.query("update ukemi.clock set shift = '1 hour'");
  const { rows } = await pool.query(
    "select round(extract(epoch from ukemi.now() - clock_timestamp()) / 60)::int as minutes",
  );
  expect(rows).toEqual([{ minutes: 60 }]);
});

test("keeps an application's own tables out of the schema ukemi", async () => {
  const { pool } = await createDatabase();
  await pool.query("create table payments (id text)");
  const { rows } = await pool.query(
    "select relnamespace::regnamespace::text as schema from pg_class where relname = 'payments'",
  );
  expect(rows).toEqual([{ schema: "public" }]);
});
