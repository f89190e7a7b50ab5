// Queues that an operator holds up and lets go, and handlers that nobody offers any more.
import { expect, test } from "vitest";
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
} from "../support/dead.ts";
import { until } from "../support/until.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";

test("a paused queue is not worked on until it is resumed, and then at once", async () => {
  const { url, pool } = await createDatabase();
  // polling would find the work much later: the resume must say so itself
  const { ukemi } = makeUkemi(url, { pollMs: 30_000 });
  const runs: string[] = [];
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => void runs.push(event.id));
  ukemi.on("stripe", "charge.failed", ({ event }) => void runs.push(event.id), { queue: "other" });
  await ukemi.work();
  const { queues } = operateOn(pool);
  expect(await queues.pause("default", MANDATE)).toEqual({ name: "default", paused: true, changed: true });
  expect(await queues.pause("default", MANDATE)).toMatchObject({ changed: false });
  await storeElsewhere(url, ["evt_1"]);
  await storeElsewhere(url, ["evt_2"], { type: "charge.failed" });
  await pool.query("select pg_notify('ukemi_work', q) from unnest(array['default', 'other']) as q");
  await until(() => runs.includes("evt_2"), "the other queue goes on");
  expect(await queues.list()).toMatchObject([
    { name: "default", paused: true, reason: "the cause is mended", ready: 1, running: 0 },
    { name: "effects.http", paused: false },
    { name: "other", paused: false, reason: null },
  ]);
  const startedAt = performance.now();
  expect(await queues.resume("default", { ...MANDATE, reason: "go on" })).toMatchObject({ changed: true });
  await until(() => runs.includes("evt_1"), "the resumed queue goes on");
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  await untilDrained(pool);
  expect(
    (await readAudit(pool)).map((row) => [row.actor, row.role, row.action, row.target, row.details]),
  ).toEqual([
    ["test:jane", "operator", "queue.paused", "default", { reason: "the cause is mended" }],
    ["test:jane", "operator", "queue.paused", "default", { reason: "the cause is mended" }],
    ["test:jane", "operator", "queue.resumed", "default", { reason: "go on" }],
  ]);
});

test("pauses nothing when the audit fails, or there is no reason", async () => {
  const { pool } = await createDatabase();
  await register(pool);
  await register(pool, { name: "bill", queue: "billing" });
  const { queues } = operateOn(pool);
  await expect(queues.pause("default", { actor: "jane", reason: "" })).rejects.toMatchObject({
    code: "invalid_parameter",
  });
  await expect(queues.pause("x".repeat(101), MANDATE)).rejects.toMatchObject({ code: "invalid_parameter" });
  // both would look paused, and nothing would have stopped
  await expect(queues.pause("inline", MANDATE)).rejects.toMatchObject({
    code: "invalid_parameter",
    message: "The queue inline cannot be paused: its handlers run before the sender is answered.",
  });
  for (const act of ["pause", "resume"] as const) {
    await expect(queues[act]("nope", MANDATE)).rejects.toMatchObject({
      code: "not_found",
      message: 'There is no queue "nope": there are billing, default.',
    });
  }
  await refuseAudit(pool, "queue.paused");
  await expect(queues.pause("default", MANDATE)).rejects.toThrow("the audit is full");
  expect((await pool.query("select from ukemi.queues")).rowCount).toBe(0);
});

test("knows the queues of workers, of jobs, and those that were spoken of", async () => {
  const { url, pool } = await createDatabase();
  const { queues } = operateOn(pool);
  await expect(queues.pause("tasks", MANDATE)).rejects.toThrow('no queue "tasks": there are none yet');
  const { ukemi } = makeUkemi(url);
  ukemi.task("clean up", () => {}, { queue: "tasks" });
  await ukemi.work();
  expect(await queues.pause("tasks", MANDATE)).toMatchObject({ changed: true });
  await ukemi.stop();
  expect(await queues.resume("tasks", MANDATE)).toMatchObject({ changed: true });
  await pool.query(
    `insert into ukemi.jobs (queue, kind, subscription, state, max_attempts, policy, run_at, created_at)
     values ('mail', 'task', 'remind', 'ready', 4, 'quick', ukemi.now(), ukemi.now())`,
  );
  expect(await queues.pause("mail", MANDATE)).toMatchObject({ changed: true });
});

test("counts what waits in each queue, by state", async () => {
  const store = await createDatabase();
  await register(store.pool);
  await register(store.pool, { name: "slow", pattern: "charge.*", queue: "slow", keyBy: "tenant" });
  await makeDead(store, ["evt_dead"]);
  await storeElsewhere(store.url, ["evt_1", "evt_2"]);
  await storeElsewhere(store.url, ["evt_3"], { type: "charge.failed", tenant: "org_1" });
  await store.pool.query(
    `update ukemi.jobs set state = 'scheduled', run_at = ukemi.now() + interval '1 h'
     where event = (select id from ukemi.events where event_id = 'evt_2')`,
  );
  await store.pool.query("update ukemi.jobs set run_at = run_at - interval '1 h' where state = 'ready'");
  const [first, slow] = await operateOn(store.pool).queues.list();
  expect(first).toMatchObject({ name: "default", ready: 1, scheduled: 1, waiting: 0, running: 0, dead: 1 });
  expect(first!.oldest_ready_seconds).toBeGreaterThanOrEqual(3600);
  expect(slow).toMatchObject({ name: "slow", ready: 0, waiting: 1, dead: 0, oldest_ready_seconds: null });
});

test("shows handlers that nobody offers while their jobs wait", async () => {
  const { url, pool } = await createDatabase();
  await register(pool, { name: "gone", pattern: "payment_intent.*" });
  const { ukemi } = makeUkemi(url);
  ukemi.on("stripe", "payment_intent.succeeded", () => {});
  ukemi.task("clean up", () => {});
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await until(
    async () => (await readJobs(pool)).some((job) => job.handler === HANDLER && job.state === "done"),
    "the handler that is there runs",
  );
  await pool.query(
    `insert into ukemi.jobs (queue, kind, subscription, state, max_attempts, policy, run_at, created_at)
     values ('default', 'task', 'forgotten task', 'ready', 4, 'quick', ukemi.now(), ukemi.now())`,
  );
  const { handlers } = operateOn(pool);
  const shown = async () =>
    (await handlers.list()).map(({ name, kind, workers, unfinished, orphaned }) => ({
      name,
      kind,
      workers,
      unfinished,
      orphaned,
    }));
  expect(await shown()).toEqual([
    { name: "clean up", kind: "task", workers: 1, unfinished: 0, orphaned: false },
    { name: "effect.http", kind: "effect", workers: 1, unfinished: 0, orphaned: false },
    { name: "forgotten task", kind: "task", workers: 0, unfinished: 1, orphaned: true },
    { name: "gone", kind: "handler", workers: 0, unfinished: 1, orphaned: true },
    { name: HANDLER, kind: "handler", workers: 1, unfinished: 0, orphaned: false },
  ]);
  // its row says that it lives; its session's lock says that it does not
  await pool.query("update ukemi.workers set ended_at = null, end_reason = null");
  await ukemi.stop();
  await pool.query("update ukemi.workers set ended_at = null, end_reason = null");
  expect((await shown()).map((handler) => handler.workers)).toEqual([0, 0, 0]);
});

test("a removed handler gets no new events, and its jobs stay", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await storeElsewhere(url, ["evt_1"]);
  const { handlers } = operateOn(pool);
  expect(await handlers.remove(HANDLER, { actor: "test:jane", reason: "moved to another service" })).toBe(
    true,
  );
  expect(await handlers.remove(HANDLER, MANDATE)).toBe(false);
  expect(await handlers.remove("nobody", MANDATE)).toBe(false);
  await storeElsewhere(url, ["evt_2"]);
  expect(await readOutcomes(pool)).toEqual({ evt_1: "pending", evt_2: "unrouted" });
  expect(await handlers.list()).toMatchObject([
    { name: HANDLER, active: false, unfinished: 1, orphaned: true },
  ]);
  expect(await readAudit(pool)).toEqual([
    {
      actor: "test:jane",
      role: "operator",
      action: "handler.removed",
      target: HANDLER,
      tenant: null,
      details: {
        reason: "moved to another service",
        source: "stripe",
        pattern: "payment_intent.succeeded",
        queue: "default",
      },
    },
  ]);
  await register(pool);
  await refuseAudit(pool, "handler.removed");
  await expect(handlers.remove(HANDLER, MANDATE)).rejects.toThrow("the audit is full");
  expect(await handlers.list()).toMatchObject([{ active: true }]);
});
