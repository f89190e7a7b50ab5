// Events that nobody wanted when they came, given to handlers that came later.
import { expect, test } from "vitest";
import { listEvents } from "../../src/storage/event-list.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import {
  MANDATE,
  operateOn,
  readAudit,
  readOutcomes,
  refuseAudit,
  register,
  removeBodies,
} from "../support/dead.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";

const SINCE = new Date(Date.now() - 3_600_000);

/** The jobs without what differs by the hour and by the place in the table. */
async function jobColumns(pool: Pool) {
  const { rows } = await pool.query<{ job: Record<string, unknown> }>(`
    select to_jsonb(j) - 'id' - 'event' - 'created_at' - 'run_at' as job
    from ukemi.jobs j join ukemi.events e on e.id = j.event order by e.event_id, j.subscription`);
  return rows.map((row) => row.job);
}

test("a handler that comes later gets the events that nobody wanted, each once", async () => {
  const { url, pool } = await createDatabase();
  const ids = Array.from({ length: 450 }, (_, index) => `evt_${String(index).padStart(3, "0")}`);
  await storeElsewhere(url, ids);
  await storeElsewhere(url, ["evt_other"], { type: "charge.failed" });
  const { ukemi } = makeUkemi(url);
  const runs: string[] = [];
  ukemi.on("stripe", "payment_intent.*", ({ event }) => void runs.push(event.id));
  await ukemi.work();
  const { events } = operateOn(pool);
  expect(await events.previewRoute({ since: SINCE })).toEqual({
    events: 450,
    jobs: 450,
    without_body: 0,
    groups: [{ handler: "stripe/payment_intent.*", type: "payment_intent.succeeded", count: 450 }],
  });
  const progress: number[] = [];
  const result = await events.route({ since: SINCE }, MANDATE, {
    onProgress: ({ done }) => progress.push(done),
  });
  expect(result).toEqual({ events: 450, jobs: 450, stopped: false });
  expect(progress).toEqual([200, 400, 450]);
  await untilDrained(pool);
  expect(runs.toSorted()).toEqual(ids);
  expect(await events.route({ since: SINCE }, MANDATE)).toEqual({ events: 0, jobs: 0, stopped: false });
  const outcomes = await readOutcomes(pool);
  expect(outcomes).toMatchObject({ evt_000: "success", evt_449: "success", evt_other: "unrouted" });
  const audit = await readAudit(pool);
  expect(audit).toHaveLength(450);
  const told = audit.map((row) => row.details as { event_id: string; handler: string; reason: string });
  expect(told.map((details) => details.event_id).toSorted()).toEqual(ids);
  expect(audit[0]).toMatchObject({
    actor: "test:jane",
    action: "event.routed",
    details: { reason: "the cause is mended", handler: "stripe/payment_intent.*" },
  });
});

test("makes exactly the jobs that the receiver would have made", async () => {
  const subscriptions = [
    { name: "keyed", pattern: "payment_intent.*", keyBy: "payment_intent", ordered: true, priority: 7 },
    { name: "by tenant", pattern: "*", keyBy: "tenant", queue: "slow" },
    { name: "plain", pattern: "payment_intent.succeeded", maxAttempts: 9, policy: "patient" },
  ];
  const event = {
    tenant: "org_1",
    refs: [
      { kind: "payment_intent", id: "pi_2" },
      { kind: "payment_intent", id: "pi_1" },
      { kind: "customer", id: "cus_1" },
    ],
  };
  const early = await createDatabase();
  for (const subscription of subscriptions) await register(early.pool, subscription);
  await storeElsewhere(early.url, ["evt_1"], event);
  await storeElsewhere(early.url, ["evt_2"]);
  const late = await createDatabase();
  await storeElsewhere(late.url, ["evt_1"], event);
  await storeElsewhere(late.url, ["evt_2"]);
  for (const subscription of subscriptions) await register(late.pool, subscription);
  expect(await operateOn(late.pool).events.route({ since: SINCE }, MANDATE)).toEqual({
    events: 2,
    jobs: 6,
    stopped: false,
  });
  const held = (jobs: Record<string, unknown>[]) =>
    // routing lets the next of each key run; the receiver leaves that to the worker
    jobs.map((job) => ({ ...job, state: job.key === null ? job.state : "waiting", key_held: false }));
  const made = await jobColumns(late.pool);
  expect(held(made)).toEqual(held(await jobColumns(early.pool)));
  expect(made.map((job) => [job.subscription, job.key, job.state])).toContainEqual([
    "keyed",
    "org_1/pi_1",
    "ready",
  ]);
  const { rows } = await late.pool.query(
    "select from ukemi.jobs j join ukemi.events e on e.id = j.event where j.run_at <> e.received_at",
  );
  expect(rows).toEqual([]);
});

test("several that route at once make no job twice", async () => {
  const { url, pool } = await createDatabase();
  await storeElsewhere(
    url,
    Array.from({ length: 450 }, (_, index) => `evt_${index}`),
  );
  await register(pool);
  const { events } = operateOn(pool);
  const results = await Promise.all([1, 2, 3].map(() => events.route({ since: SINCE }, MANDATE)));
  expect(results.reduce((sum, result) => sum + result.jobs, 0)).toBe(450);
  expect(await readJobs(pool)).toHaveLength(450);
  expect(await readAudit(pool)).toHaveLength(450);
});

test("takes only events of the given time, type and handler, and never skipped ones", async () => {
  const { url, pool } = await createDatabase();
  await storeElsewhere(url, ["evt_1", "evt_2"]);
  await storeElsewhere(url, ["evt_charge"], { type: "charge.failed" });
  await storeElsewhere(url, ["evt_skipped"], { skip: "another mode" });
  await register(pool);
  await register(pool, { name: "all", pattern: "*" });
  await register(pool, { name: "elsewhere", source: "other", pattern: "*" });
  const { events } = operateOn(pool);
  const future = new Date(Date.now() + 60_000);
  expect(await events.previewRoute({ since: future })).toMatchObject({ events: 0, jobs: 0, groups: [] });
  expect(await events.previewRoute({ since: SINCE, until: SINCE })).toMatchObject({ events: 0 });
  expect(await events.previewRoute({ since: SINCE })).toMatchObject({ events: 3, jobs: 5 });
  expect(await events.route({ since: SINCE, type: "charge.failed" }, MANDATE)).toMatchObject({
    events: 1,
    jobs: 1,
  });
  expect(await events.route({ since: SINCE, handler: "all" }, MANDATE)).toMatchObject({ events: 2, jobs: 2 });
  expect((await readJobs(pool)).map((job) => job.handler)).toEqual(["all", "all", "all"]);
  expect(await readOutcomes(pool)).toMatchObject({ evt_1: "pending", evt_skipped: "skipped" });
  await expect(events.route({ since: SINCE, handler: "nobody" }, MANDATE)).rejects.toMatchObject({
    code: "invalid_parameter",
  });
  await expect(events.route({ since: SINCE }, { actor: "a", reason: "" })).rejects.toMatchObject({
    code: "invalid_parameter",
  });
});

test("shows routed events as pending in the list", async () => {
  const { url, pool } = await createDatabase();
  await storeElsewhere(url, ["evt_1"]);
  await register(pool);
  await operateOn(pool).events.route({ since: SINCE }, MANDATE);
  const listed = await listEvents(pool, { status: "pending", limit: 10 });
  expect(listed.map((event) => [event.event_id, event.status])).toEqual([["evt_1", "pending"]]);
  expect(await listEvents(pool, { status: "unrouted", limit: 10 })).toEqual([]);
});

test("leaves events without a body where they are, and says how many", async () => {
  const { url, pool } = await createDatabase();
  await storeElsewhere(url, ["evt_1", "evt_2"]);
  await removeBodies(pool, ["evt_2"]);
  await register(pool);
  const { events } = operateOn(pool);
  expect(await events.previewRoute({ since: SINCE })).toMatchObject({ events: 1, jobs: 1, without_body: 1 });
  expect(await events.route({ since: SINCE }, MANDATE)).toEqual({ events: 1, jobs: 1, stopped: false });
  expect(await readOutcomes(pool)).toEqual({ evt_1: "pending", evt_2: "unrouted" });
});

test("makes nothing when the audit fails", async () => {
  const { url, pool } = await createDatabase();
  await storeElsewhere(url, ["evt_1"]);
  await register(pool);
  await refuseAudit(pool, "event.routed");
  await expect(operateOn(pool).events.route({ since: SINCE }, MANDATE)).rejects.toThrow("the audit is full");
  expect(await readJobs(pool)).toEqual([]);
  expect(await readOutcomes(pool)).toEqual({ evt_1: "unrouted" });
});
