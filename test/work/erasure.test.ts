// Erasing one subject: nothing personal is left in any table, and everything that was done is still known.
import { expect, test } from "vitest";
import { storeEvents, type NewEvent } from "../../src/storage/events.ts";
import { eraseBodies } from "../../src/storage/erasure.ts";
import { transaction, type Pool, type Queryable } from "../../src/storage/postgres.ts";
import { tablesWith } from "../support/canary.ts";
import { createDatabase } from "../support/database.ts";
import {
  HANDLER,
  makeDead,
  MANDATE,
  operateOn,
  readAudit,
  readOutcomes,
  refuseAudit,
  register,
  removeBodies,
} from "../support/dead.ts";
import { post } from "../support/letter-box.ts";
import { newEvent, withConnection } from "../support/store.ts";
import { until } from "../support/until.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";

const CANARY = "hanako.yamada at example.jp";
const CUSTOMER = "cus_hanako";
const REFS = [{ kind: "customer", id: CUSTOMER }];

const personal = (id: string) => Buffer.from(JSON.stringify({ id, mail: CANARY, customer: CUSTOMER }));

/** Events of the subject, each with a body that names her. */
const storeHers = (url: string, ids: readonly string[], changes: Partial<NewEvent> = {}) =>
  withConnection(url, (connection) =>
    storeEvents(
      connection,
      ids.map((id) =>
        newEvent(id, {
          body: personal(id),
          headers: JSON.stringify({ "x-for": CANARY }),
          refs: REFS,
          ...changes,
        }),
      ),
    ),
  );

const bodyCount = async (pool: Pool) =>
  Number((await pool.query<{ n: string }>("select count(*) as n from ukemi.event_bodies")).rows[0]!.n);

test("removes every trace of the subject's words, and keeps what was done", async () => {
  const { url, pool } = await createDatabase();
  const place = makeUkemi(url);
  const { ukemi } = place;
  let tries = 0;
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => {
    tries += 1;
    if (event.id === "evt_dead" || tries === 1) throw new Error(`no mail to ${CANARY}`);
  });
  await ukemi.work();
  await storeHers(url, ["evt_1", "evt_2", "evt_dead"]);
  await storeElsewhere(url, ["evt_other"], { refs: [{ kind: "customer", id: "cus_taro" }] });
  await storeHers(url, ["evt_unrouted"], { type: "charge.failed" });
  await post(place, { id: "evt_refused", secret: "whsec_x", metadata: { mail: CANARY, of: CUSTOMER } });
  await untilDrained(pool);
  await until(
    async () => (await tablesWith(pool, CANARY)).includes("rejections"),
    "the refused request to be kept",
  );
  expect(await tablesWith(pool, CANARY)).toEqual([
    "attempts",
    "event_bodies",
    "event_outcomes",
    "jobs",
    "rejections",
  ]);
  const { bodies, dead } = ukemi.operate;
  const counts = { events: 4, bodies: 4, effects: 0, unfinished: 0, running: 0, dead: 1, rejections: 1 };
  expect(await bodies.previewErase({ ref: CUSTOMER })).toEqual(counts);
  expect(await bodies.previewErase({ ref: `customer:${CUSTOMER}` })).toEqual(counts);
  expect(await bodies.previewErase({ ref: `invoice:${CUSTOMER}` })).toMatchObject({ events: 0, bodies: 0 });
  await expect(bodies.erase({ ref: CUSTOMER }, MANDATE)).rejects.toMatchObject({
    code: "body_needed",
    message: "0 unfinished jobs or effects and 1 dead letters still need what would be erased.",
  });
  expect(await bodyCount(pool)).toBe(5);
  const before = await readOutcomes(pool);
  const progress: unknown[] = [];
  expect(
    await bodies.erase({ ref: CUSTOMER, includeUnfinished: true }, MANDATE, {
      onProgress: (step) => void progress.push(step),
    }),
  ).toEqual({
    events: 4,
    bodies: 4,
    effects: 0,
    jobs_cancelled: 0,
    rejections: 1,
    left_running: 0,
    left_unfinished: 0,
    stopped: false,
  });
  expect(progress).toEqual([{ done: 4, total: 4 }]);
  expect(await tablesWith(pool, CANARY)).toEqual([]);
  // what was received and done is still known
  expect(await readOutcomes(pool)).toEqual(before);
  expect(before.evt_dead).toBe("failed");
  const jobs = await readJobs(pool);
  expect(jobs.map((job) => [job.event_id, job.state, job.error_class])).toContainEqual([
    "evt_dead",
    "dead",
    "Error",
  ]);
  expect((await pool.query("select ukemi.events_with_ref($1)", [CUSTOMER])).rowCount).toBe(4);
  const said = await pool.query(
    `select distinct error_message from ukemi.attempts where error_message is not null
     union select error_message from ukemi.event_outcomes where error_message is not null
     union select error_message from ukemi.jobs where error_message is not null`,
  );
  expect(said.rows).toEqual([{ error_message: "erased" }]);
  expect((await readAudit(pool)).filter((row) => String(row.action).endsWith("erased"))).toEqual([
    {
      actor: "test:jane",
      role: "operator",
      action: "bodies.erased",
      target: CUSTOMER,
      tenant: null,
      details: { reason: MANDATE.reason, events: 4, bodies: 4 },
    },
    {
      actor: "test:jane",
      role: "operator",
      action: "rejections.erased",
      target: CUSTOMER,
      tenant: null,
      details: { reason: MANDATE.reason, rejections: 1 },
    },
  ]);
  // and it says so where it is shown, unlike one that was pruned
  const shown = await bodies.show("evt_1");
  expect(shown).toMatchObject({ state: "erased", body: null, headers: null });
  expect(shown!.erased_at).toBeInstanceOf(Date);
  await removeBodies(pool, ["evt_other"]);
  expect(await bodies.show("evt_other")).toMatchObject({ state: "pruned", erased_at: null });
  const job = Number(jobs.find(({ event_id }) => event_id === "evt_dead")!.id);
  expect(await operateOn(pool).jobs.show(job)).toMatchObject({ has_body: false, error_message: "erased" });
  expect((await operateOn(pool).jobs.show(job))!.body_erased_at).toEqual(expect.any(String));
  expect(await dead.replay({ ids: [job] }, MANDATE)).toMatchObject({
    changed: 0,
    skips: [{ id: job, reason: "erased" }],
  });
  // again, and there is nothing left to do
  expect(await bodies.previewErase({ ref: CUSTOMER })).toEqual({
    events: 0,
    bodies: 0,
    effects: 0,
    unfinished: 0,
    running: 0,
    dead: 0,
    rejections: 0,
  });
  expect(await bodies.erase({ ref: CUSTOMER }, MANDATE)).toMatchObject({ events: 0, bodies: 0 });
}, 120_000);

test("the sender's resend brings neither the body nor a dead job back", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  const place = makeUkemi(url);
  const metadata = { mail: CANARY };
  const sent = { id: "evt_1", metadata, ids: { customer: CUSTOMER } };
  expect(await post(place, sent)).toEqual({ status: 204, duplicate: false });
  expect(await post(place, { ...sent, id: "evt_2" })).toEqual({ status: 204, duplicate: false });
  await pool.query(
    `update ukemi.jobs set state = 'dead', death = 'exhausted', finished_at = ukemi.now(), attempt = max_attempts`,
  );
  const { bodies } = place.ukemi.operate;
  await bodies.erase({ event: "evt_1", includeUnfinished: true }, MANDATE);
  expect(await post(place, sent)).toEqual({ status: 204, duplicate: true });
  expect(await post(place, { ...sent, id: "evt_2" })).toEqual({ status: 204, duplicate: true });
  expect((await readJobs(pool)).map((job) => [job.event_id, job.state])).toEqual([
    ["evt_1", "dead"],
    ["evt_2", "ready"],
  ]);
  expect(await bodyCount(pool)).toBe(1);
  expect((await bodies.show("evt_1"))!.state).toBe("erased");
});

test("a caller bound to a tenant erases only that tenant's, and reads only its own", async () => {
  const { url, pool } = await createDatabase();
  await storeHers(url, ["evt_1"], { tenant: "org_1" });
  await storeHers(url, ["evt_2"], { tenant: "org_2" });
  await storeHers(url, ["evt_3"]);
  const place = makeUkemi(url);
  await post(place, { id: "evt_refused", secret: "whsec_x", metadata: { of: CUSTOMER } });
  await until(
    async () => (await pool.query("select from ukemi.rejections")).rowCount === 1,
    "the refused request to be kept",
  );
  const { bodies } = place.ukemi.operate;
  const bound = { tenants: ["org_1"] };
  expect(await bodies.previewErase({ ref: CUSTOMER, ...bound })).toMatchObject({ events: 1, rejections: 0 });
  for (const event of ["evt_2", "evt_3"]) {
    expect(await bodies.previewErase({ event, ...bound })).toMatchObject({ events: 0 });
    expect(await bodies.show(event, bound)).toBeUndefined();
  }
  expect(await bodies.erase({ ref: CUSTOMER, ...bound }, MANDATE)).toMatchObject({
    events: 1,
    rejections: 0,
  });
  expect(await bodies.erase({ ref: CUSTOMER, tenants: [] }, MANDATE)).toMatchObject({ events: 0 });
  const states = await Promise.all(["evt_1", "evt_2", "evt_3"].map((event) => bodies.show(event)));
  expect(states.map((shown) => shown?.state)).toEqual(["erased", "kept", "kept"]);
  expect((await readAudit(pool)).map((row) => [row.action, row.tenant])).toEqual([
    ["bodies.erased", "org_1"],
  ]);
  // whoever is bound to nobody erases both, and each tenant's audit tells of its own
  expect(await bodies.erase({ ref: CUSTOMER }, MANDATE)).toMatchObject({ events: 2, rejections: 1 });
  expect((await readAudit(pool)).slice(1).map((row) => [row.action, row.tenant])).toEqual(
    expect.arrayContaining([
      ["bodies.erased", "org_2"],
      ["bodies.erased", null],
      ["rejections.erased", null],
    ]),
  );
});

test("leaves what a handler is at work on, and takes it when it has ended", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  let finish = () => {};
  const held = new Promise<void>((resolve) => (finish = resolve));
  const runs: string[] = [];
  ukemi.on("stripe", "payment_intent.succeeded", async ({ event, received }) => {
    if (event.id === "evt_runs") await held;
    runs.push(received.body.toString());
  });
  await ukemi.work();
  await storeHers(url, ["evt_runs"]);
  await until(
    async () => (await readJobs(pool)).some((job) => job.state === "running"),
    "the handler to be at work",
  );
  await storeHers(url, ["evt_done"]);
  await until(() => runs.length === 1, "the other handler to be done");
  await until(
    async () => (await readJobs(pool)).some((job) => job.state === "done"),
    "its job to be settled",
  );
  const { bodies } = ukemi.operate;
  expect(await bodies.previewErase({ ref: CUSTOMER })).toMatchObject({
    events: 2,
    unfinished: 1,
    running: 1,
  });
  await expect(bodies.erase({ ref: CUSTOMER }, MANDATE)).rejects.toMatchObject({ code: "body_needed" });
  expect(await bodies.erase({ ref: CUSTOMER, includeUnfinished: true }, MANDATE)).toMatchObject({
    events: 1,
    bodies: 1,
    left_running: 1,
  });
  expect((await bodies.show("evt_runs"))!.state).toBe("kept");
  finish();
  await untilDrained(pool);
  expect(runs).toHaveLength(2);
  expect(await readOutcomes(pool)).toEqual({ evt_done: "success", evt_runs: "success" });
  expect(await bodies.erase({ ref: CUSTOMER }, MANDATE)).toMatchObject({ events: 1, left_running: 0 });
  expect(await tablesWith(pool, CANARY)).toEqual([]);
});

test("a job that is about to be cancelled cannot be claimed meanwhile", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  const runs: string[] = [];
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => void runs.push(event.id));
  await ukemi.start();
  await storeHers(url, ["evt_hers"]);
  const { id } = (await pool.query<{ id: string }>("select id from ukemi.events")).rows[0]!;
  await transaction(pool, async (client) => {
    await client.query("set local idle_in_transaction_session_timeout = 0");
    const query = async (text: string, values?: unknown[]) => {
      if (text.includes("insert into ukemi.erasures")) {
        // the states of the jobs are known: now a worker comes along
        await ukemi.work();
        await storeElsewhere(url, ["evt_other"]);
        await until(() => runs.includes("evt_other"), "the worker to be at work");
      }
      return client.query(text, values);
    };
    const erasing = { ...MANDATE, subject: CUSTOMER, includeUnfinished: true };
    const erased = await eraseBodies({ query } as Queryable, [id], erasing);
    expect(erased).toMatchObject({ events: 1, bodies: 1, cancelled: 1, leftRunning: 0 });
  });
  await untilDrained(pool);
  expect(runs).toEqual(["evt_other"]);
  expect((await readJobs(pool)).map((job) => job.state)).toEqual(["cancelled", "done"]);
});

test("cancels unfinished jobs with the erasure, and lets the next of their key run", async () => {
  const { url, pool } = await createDatabase();
  await register(pool, { keyBy: "customer" });
  await register(pool, { name: "second", pattern: "payment_intent.*" });
  await storeHers(url, ["evt_first"]);
  await storeElsewhere(url, ["evt_next"], { refs: REFS });
  await pool.query("select ukemi.promote_keys(array['default'], array[$1])", [CUSTOMER]);
  await pool.query(
    "update ukemi.jobs set state = 'done', attempt = 1, finished_at = ukemi.now() where id = (select max(id) from ukemi.jobs where subscription = 'second')",
  );
  const states = async () => (await readJobs(pool)).map((job) => [job.event_id, job.handler, job.state]);
  const before = await states();
  expect(before).toHaveLength(4);
  for (const row of [
    ["evt_first", "second", "ready"],
    ["evt_first", HANDLER, "ready"],
    ["evt_next", "second", "done"],
    ["evt_next", HANDLER, "waiting"],
  ]) {
    expect(before).toContainEqual(row);
  }
  const { bodies } = operateOn(pool);
  expect(await bodies.erase({ event: "evt_first", includeUnfinished: true }, MANDATE)).toMatchObject({
    events: 1,
    jobs_cancelled: 2,
  });
  const after = await states();
  expect(after.filter(([id]) => id === "evt_first").map(([, , state]) => state)).toEqual([
    "cancelled",
    "cancelled",
  ]);
  expect(after).toContainEqual(["evt_next", HANDLER, "ready"]);
  expect(await readOutcomes(pool)).toMatchObject({ evt_first: "skipped", evt_next: "pending" });
  // of the second event one job is done: it was a success, as far as it came
  await bodies.erase({ event: "evt_next", includeUnfinished: true }, MANDATE);
  expect(await readOutcomes(pool)).toMatchObject({ evt_first: "skipped", evt_next: "success" });
  expect((await readAudit(pool)).filter((row) => row.action === "job.cancelled")).toHaveLength(3);
});

test("erases nothing where the audit fails, and needs a mandate and a subject", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await makeDead({ url, pool }, ["evt_1"], { body: personal("evt_1"), refs: REFS, errorClass: CANARY });
  const { bodies } = operateOn(pool);
  const request = { ref: CUSTOMER, includeUnfinished: true };
  await expect(bodies.erase(request, { actor: "jane", reason: " " })).rejects.toMatchObject({
    code: "invalid_parameter",
  });
  for (const wrong of [{}, { ref: CUSTOMER, event: "evt_1" }, { ref: " " }, { event: "\u0000" }]) {
    await expect(bodies.erase(wrong, MANDATE)).rejects.toMatchObject({ code: "invalid_parameter" });
    await expect(bodies.previewErase(wrong)).rejects.toMatchObject({ code: "invalid_parameter" });
  }
  await refuseAudit(pool, "bodies.erased");
  await expect(bodies.erase(request, MANDATE)).rejects.toThrow("the audit is full");
  expect(await bodyCount(pool)).toBe(1);
  expect((await pool.query("select from ukemi.erasures")).rowCount).toBe(0);
  expect((await readJobs(pool))[0]!.error_message).toContain(CANARY);
});

test("goes on where it was stopped, and counts each event once", async () => {
  const { url, pool } = await createDatabase();
  const ids = Array.from({ length: 1203 }, (_, index) => `evt_${index}`);
  await storeElsewhere(url, ids, { refs: REFS });
  const { bodies } = operateOn(pool);
  const stop = new AbortController();
  const first = await bodies.erase({ ref: CUSTOMER }, MANDATE, {
    signal: stop.signal,
    onProgress: () => stop.abort(),
  });
  expect(first).toMatchObject({ events: 500, bodies: 500, stopped: true });
  expect(await bodyCount(pool)).toBe(703);
  // two operators at once share the rest
  const both = await Promise.all([
    bodies.erase({ ref: CUSTOMER }, MANDATE),
    bodies.erase({ ref: CUSTOMER }, MANDATE),
  ]);
  for (const what of ["events", "bodies"] as const) {
    expect(both.reduce((sum, result) => sum + result[what], 0)).toBe(703);
  }
  expect(await bodyCount(pool)).toBe(0);
  const audited = (await readAudit(pool)).map((row) => row.details as { events: number; bodies: number });
  expect(audited.reduce((sum, { events }) => sum + events, 0)).toBe(1203);
  expect(audited.reduce((sum, { bodies: count }) => sum + count, 0)).toBe(1203);
});

test("finds a body that is being moved to another place meanwhile", async () => {
  const { url, pool } = await createDatabase();
  await storeHers(url, ["evt_1"]);
  const mover = await pool.connect();
  try {
    // as the months made ahead, sealing and retention do
    await mover.query("begin; set local ukemi.retention = 'on'");
    await mover.query("create temp table moved on commit drop as select * from ukemi.event_bodies");
    await mover.query("delete from ukemi.event_bodies");
    await mover.query("insert into ukemi.event_bodies select * from moved");
    const erasing = operateOn(pool).bodies.erase({ ref: CUSTOMER }, MANDATE);
    await until(
      async () =>
        (
          await pool.query(
            `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
               and query like 'delete from ukemi.event_bodies%'`,
          )
        ).rowCount === 1,
      "the erasure to meet the mover",
    );
    await mover.query("commit");
    expect(await erasing).toMatchObject({ events: 1, bodies: 1 });
  } finally {
    mover.release();
  }
  expect(await tablesWith(pool, CANARY)).toEqual([]);
});

test("erases while the same events are worked on: each is either done or cancelled, and none is left", async () => {
  const { url, pool } = await createDatabase();
  await pool.query("create table worked (event text, handler text)");
  const { ukemi, lines } = makeUkemi(url);
  for (const name of ["one", "two"]) {
    ukemi.on(
      "stripe",
      "payment_intent.succeeded",
      async ({ event, tx, received, job }) => {
        expect(received.body.toString()).toContain(CANARY);
        await tx.query("insert into worked select $1, $2 from pg_sleep(0.03)", [event.id, name]);
        if (job.attempt === 1 && event.id.endsWith("3")) throw new Error(`no mail to ${CANARY}`);
      },
      { name },
    );
  }
  await ukemi.start();
  const ids = Array.from({ length: 100 }, (_, index) => `evt_${index}`);
  await storeHers(url, ids);
  // some that nobody can have done by then
  await pool.query(
    `update ukemi.jobs set state = 'scheduled', run_at = ukemi.now() + interval '1 h'
     where event in (select id from ukemi.events where event_id >= 'evt_95')`,
  );
  await ukemi.work();
  const { bodies } = ukemi.operate;
  const request = { ref: CUSTOMER, includeUnfinished: true };
  await until(async () => (await pool.query("select from worked")).rowCount! > 20, "handlers to be at work");
  let erased = 0;
  // one by one from the end, while handlers come from the beginning
  for (const event of ids.toReversed()) {
    erased += (await bodies.erase({ event, includeUnfinished: true }, MANDATE)).events;
  }
  await until(
    async () => {
      erased += (await bodies.erase(request, MANDATE)).events;
      return (await bodies.previewErase(request)).events === 0;
    },
    "every event to be erased",
    30_000,
  );
  expect(erased).toBe(ids.length);
  const jobs = await untilDrained(pool);
  expect(jobs).toHaveLength(2 * ids.length);
  expect(await tablesWith(pool, CANARY)).toEqual([]);
  // what a handler wrote and what is done are one commit, as ever
  const { rows } = await pool.query<{ event: string; handler: string }>("select event, handler from worked");
  const done = jobs.filter((job) => job.state === "done");
  expect(new Set(rows.map((row) => `${row.event} ${row.handler}`))).toEqual(
    new Set(done.map((job) => `${job.event_id} ${job.handler}`)),
  );
  expect(rows).toHaveLength(done.length);
  const outcomes = await readOutcomes(pool);
  for (const id of ids) {
    const states = jobs.filter((job) => job.event_id === id).map((job) => job.state);
    const expected = states.includes("dead") ? "failed" : states.includes("done") ? "success" : "skipped";
    expect([id, outcomes[id]]).toEqual([id, expected]);
  }
  expect(JSON.stringify(lines())).not.toContain("deadlock");
  expect(done.length).toBeGreaterThan(0);
  expect(done.length).toBeLessThan(jobs.length);
  console.log(`${done.length} jobs done, ${jobs.length - done.length} cancelled or dead`);
}, 120_000);
