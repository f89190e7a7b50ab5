// Months of bodies: they go as a whole, and what a job still needs stays, with every guard of the month.
import { expect, test } from "vitest";
import { storeEvents } from "../../src/storage/events.ts";
import { uuidv7 } from "../../src/storage/ids.ts";
import { openPool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import {
  makeDead,
  MANDATE,
  operateOn,
  readAudit,
  refuseAudit,
  register,
  removeBodies,
} from "../support/dead.ts";
import {
  addFinished,
  bodiesOf,
  countRows,
  finishJobs,
  letPass,
  monthsOf,
  retentionOn,
} from "../support/retention.ts";
import { newEvent, withConnection } from "../support/store.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";

/** The partition that a body of now lies in. */
async function thisMonth(pool: Parameters<typeof monthsOf>[0]): Promise<string> {
  const { rows } = await pool.query<{ table: string }>(
    "select 'event_bodies_' || to_char(ukemi.now() at time zone 'UTC', 'YYYYMM') as table",
  );
  return rows[0]!.table;
}

test("drops whole months when they are old enough, and not a day earlier", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await storeElsewhere(url, ["evt_1", "evt_2"]);
  await finishJobs(pool);
  const month = await thisMonth(pool);
  const { rows } = await pool.query<{ days: number }>(
    `select extract(epoch from date_trunc('month', ukemi.now(), 'UTC') + interval '1 month' - ukemi.now())::float8
       / 86400 as days`,
  );
  await letPass(pool, rows[0]!.days + 89.9);
  const retention = retentionOn(pool);
  expect(await retention.preview()).toMatchObject({ months: [] });
  expect(await retention.prune(MANDATE)).toMatchObject({ bodies: 0, months: [] });
  await letPass(pool, 0.2);
  const named = `${month.slice(-6, -2)}-${month.slice(-2)}`;
  const preview = await retention.preview();
  expect(preview.months).toEqual([
    {
      month: named,
      bodies: { count: 2, exact: true },
      kept: { count: 0, exact: true },
      bytes: expect.any(Number),
    },
  ]);
  const seen: unknown[] = [];
  const result = await retention.prune(MANDATE, {
    onProgress: (progress) => progress.part === "bodies" && seen.push(progress),
  });
  expect(result).toMatchObject({
    bodies: 2,
    months: [{ month: named, bodies: 2, kept: 0, bytes: preview.months[0]!.bytes }],
    held_up: [],
  });
  expect(seen).toEqual([{ part: "bodies", done: 1, total: 1 }]);
  expect((await monthsOf(pool)).map(({ table }) => table)).not.toContain(month);
  expect(await countRows(pool, "events")).toBe(2);
  const audit = (await readAudit(pool)).filter((row) => row.target === month);
  expect(audit).toMatchObject([
    {
      actor: "test:jane",
      role: "operator",
      action: "retention.pruned",
      details: { reason: "the cause is mended", month: named, bodies: 2, kept: 0 },
    },
  ]);
  expect(await retention.prune(MANDATE)).toMatchObject({ bodies: 0, months: [] });
});

test("keeps the bodies of unfinished and dead jobs, under the same guards, and lets them go when those end", async () => {
  const store = await createDatabase();
  const { url, pool } = store;
  await register(pool);
  await makeDead(store, ["evt_dead"]);
  await storeElsewhere(url, ["evt_ready", "evt_done", "evt_scheduled"]);
  await finishJobs(pool, ["evt_done"]);
  await pool.query(
    `update ukemi.jobs set state = 'scheduled', run_at = ukemi.now() + interval '3 years'
     where event = (select id from ukemi.events where event_id = 'evt_scheduled')`,
  );
  await addFinished(pool, 300);
  const month = await thisMonth(pool);
  const before = (await monthsOf(pool)).find(({ table }) => table === month);
  const shape = () =>
    pool.query<{ definition: string }>(
      `select conname || ' ' || pg_get_constraintdef(c.oid) as definition from pg_constraint c
       where conrelid = 'ukemi.${month}'::regclass order by 1`,
    );
  const constraints = (await shape()).rows;
  await letPass(pool, 200);
  const retention = retentionOn(pool);
  expect((await retention.preview()).months[0]).toMatchObject({
    bodies: { count: 304, exact: true },
    kept: { count: 3, exact: true },
  });
  expect((await retention.prune(MANDATE)).months[0]).toMatchObject({ bodies: 301, kept: 3 });
  expect(await bodiesOf(pool)).toEqual(["evt_dead", "evt_ready", "evt_scheduled"]);
  expect((await monthsOf(pool)).find(({ table }) => table === month)).toEqual(before);
  expect((await shape()).rows).toEqual(constraints);
  for (const statement of [
    `delete from ukemi.${month}`,
    `update ukemi.${month} set headers = ''`,
    `truncate ukemi.${month}`,
    `insert into ukemi.${month} select * from ukemi.event_bodies`,
  ]) {
    await expect(pool.query(statement)).rejects.toThrow(/append-only|duplicate key/);
  }
  const left = await pool.query("select to_regclass($1) as table", [`ukemi.${month}_kept`]);
  expect(left.rows).toEqual([{ table: null }]);

  // the whole one can be replayed; what has ended goes at the next look, row by row
  expect(await operateOn(pool).dead.preview({ all: true })).toMatchObject({ count: 1, without_body: 0 });
  await finishJobs(pool, ["evt_ready"]);
  expect(await retention.prune(MANDATE)).toMatchObject({ bodies: 1, months: [] });
  expect(await bodiesOf(pool)).toEqual(["evt_dead", "evt_scheduled"]);
  expect(await retention.prune(MANDATE)).toMatchObject({ bodies: 0, months: [] });
  await operateOn(pool).dead.drop({ all: true }, MANDATE);
  await pool.query(
    "update ukemi.jobs set state = 'cancelled', finished_at = ukemi.now() where state = 'scheduled'",
  );
  const last = await retention.prune(MANDATE);
  expect(last.bodies).toBe(2);
  expect((await monthsOf(pool)).map(({ table }) => table)).not.toContain(month);
});

test("keeps a body whose id says nothing about its time", async () => {
  const store = await createDatabase();
  const { url, pool } = store;
  await register(pool);
  // a receiver whose clock was years off made these ids
  const odd = [newEvent("evt_past", { id: uuidv7(0) }), newEvent("evt_future", { id: uuidv7(4e12) })];
  await withConnection(url, (connection) => storeEvents(connection, odd));
  await addFinished(pool, 300);
  await letPass(pool, 200);
  expect(await retentionOn(pool).prune(MANDATE)).toMatchObject({ bodies: 300 });
  expect(await bodiesOf(pool)).toEqual(["evt_future", "evt_past"]);
});

test("removes old bodies whose month was never made, except those that a job needs", async () => {
  const store = await createDatabase();
  const { url, pool } = store;
  await register(pool);
  await pool.query("update ukemi.clock set shift = '400 days'");
  await makeDead(store, ["evt_dead"]);
  await storeElsewhere(url, ["evt_done"]);
  await finishJobs(pool);
  expect(await countRows(pool, "event_bodies_default")).toBe(2);
  await letPass(pool, 200);
  await storeElsewhere(url, ["evt_new"]);
  await finishJobs(pool);
  const retention = retentionOn(pool);
  expect((await retention.preview()).stray_bodies).toEqual({ count: 1, exact: true });
  expect(await retention.prune(MANDATE)).toMatchObject({ bodies: 1 });
  expect(await bodiesOf(pool)).toEqual(["evt_dead", "evt_new"]);
});

test("removes no month when the audit fails", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await storeElsewhere(url, ["evt_1"]);
  await finishJobs(pool);
  await letPass(pool, 200);
  await refuseAudit(pool, "retention.pruned");
  await expect(retentionOn(pool).prune(MANDATE)).rejects.toThrow("the audit is full");
  expect(await bodiesOf(pool)).toEqual(["evt_1"]);
  // rows went nevertheless, each with a note for the audit, which the next run writes down
  expect(await countRows(pool, "jobs")).toBe(0);
  await pool.query("drop trigger refuse_audit on ukemi.audit_log");
  await pool.query("update ukemi.clock set shift = shift + interval '1 minute'");
  await retentionOn(pool).prune({ actor: "test:joe", reason: "again" });
  expect(await bodiesOf(pool)).toEqual([]);
  const rows = (await readAudit(pool)).filter((row) => row.target === "rows");
  expect(rows).toMatchObject([{ actor: "test:jane", details: { jobs: 1, attempts: 1 } }]);
});

test("says what a person wrote as the reason, whatever is in it", async () => {
  const { pool } = await createDatabase();
  await letPass(pool, 400);
  const reason = "it's $swap$ '; drop table ukemi.jobs; -- \\ \"x\" ü";
  const result = await retentionOn(pool).prune({ actor: "o'brien", reason });
  expect(result.months.length).toBeGreaterThan(0);
  const audit = await readAudit(pool);
  expect(audit.every((row) => row.actor === "o'brien")).toBe(true);
  expect(audit.every((row) => (row.details as { reason: string }).reason === reason)).toBe(true);
});

test("replays a dead letter that is older than every limit, and skips one whose body is gone", async () => {
  const store = await createDatabase();
  const { url, pool } = store;
  await register(pool);
  const ids = await makeDead(store, ["evt_dead", "evt_bodiless"]);
  await storeElsewhere(url, ["evt_done"]);
  await finishJobs(pool);
  const done = Number((await readJobs(pool)).find((job) => job.event_id === "evt_done")!.id);
  await addFinished(pool, 300);
  await letPass(pool, 200);
  await retentionOn(pool, { jobDays: 0 }).prune(MANDATE);
  expect(await bodiesOf(pool)).toEqual(["evt_bodiless", "evt_dead"]);
  const { dead, events, jobs } = operateOn(pool);
  // the finished one says that its body is gone
  expect(await jobs.show(done)).toMatchObject({ state: "done", has_body: false });
  expect(await jobs.show(ids.get("evt_dead")!)).toMatchObject({ state: "dead", has_body: true });
  await removeBodies(pool, ["evt_bodiless"]);
  expect(await dead.preview({ all: true })).toMatchObject({ count: 2, without_body: 1 });
  expect(await dead.replay({ all: true }, MANDATE)).toMatchObject({
    changed: 1,
    skips: [{ id: ids.get("evt_bodiless"), reason: "no_body" }],
  });
  const { ukemi } = makeUkemi(url);
  const runs: string[] = [];
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => void runs.push(event.id));
  await ukemi.work();
  await untilDrained(pool);
  expect(runs).toEqual(["evt_dead"]);
  expect(await events.previewRoute({ since: new Date(0) })).toMatchObject({ jobs: 0 });
});

test("says of unrouted events whose bodies are gone that they stay unrouted", async () => {
  const { url, pool } = await createDatabase();
  await storeElsewhere(url, ["evt_1"]);
  await letPass(pool, 200);
  expect(await retentionOn(pool).prune(MANDATE)).toMatchObject({ bodies: 1 });
  await register(pool);
  const request = { since: new Date(0) };
  const { events } = operateOn(pool);
  expect(await events.previewRoute(request)).toMatchObject({ jobs: 0, without_body: 1 });
  expect(await events.route(request, MANDATE)).toMatchObject({ events: 0, jobs: 0 });
});

test("prunes where the session's time zone and date style are odd", async () => {
  const { url, pool, name } = await createDatabase();
  await pool.query(`alter database ${name} set datestyle = 'Postgres, MDY'`);
  await pool.query(`alter database ${name} set timezone = 'Asia/Kolkata'`);
  const fresh = openPool(url, { max: 3 });
  try {
    const store = { url, pool: fresh };
    await register(fresh);
    await makeDead(store, ["evt_dead"]);
    await addFinished(fresh, 300);
    await letPass(fresh, 200);
    expect(await retentionOn(fresh).prune(MANDATE)).toMatchObject({ bodies: 300 });
    expect(await bodiesOf(fresh)).toEqual(["evt_dead"]);
  } finally {
    await fresh.end();
  }
});
