// Operations: many dead letters replayed or dropped as one thing that has a name, a pace and an end.
import { expect, test } from "vitest";
import type { Alert } from "../../src/observe/alerts.ts";
import { createOperationRound } from "../../src/operate/operation-round.ts";
import { createOperations, type Operations } from "../../src/operate/operations.ts";
import { makeRounds } from "../../src/operate/rounds.ts";
import { readWithin } from "../../src/storage/postgres.ts";
import { retryAfter, terminal } from "../../src/work/outcome.ts";
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
import { countItems, endJobs, look, pass, readChanges, stepNow, stopClock } from "../support/operations.ts";
import { until } from "../support/until.ts";
import { makeUkemi, readJobs, untilDrained } from "../support/work.ts";

const REPLAY = { kind: "replay", name: "after the fix" } as const;
const ALL = { ...REPLAY, all: true } as const;

const numbered = (count: number) =>
  Array.from({ length: count }, (_, i) => `evt_${String(i).padStart(4, "0")}`);

async function withDead(count: number) {
  const store = await createDatabase();
  await register(store.pool);
  const events = numbered(count);
  const ids = await makeDead(store, events);
  const { dead, operations } = operateOn(store.pool);
  return { ...store, events, ids, dead, operations };
}

async function untilDone(operations: Operations, id: string): Promise<void> {
  await until(async () => (await operations.show(id)).state === "done", "the operation to be done", 50_000);
}

/** The same where the test makes every step and moves the clock. */
async function byHand(count: number) {
  const world = await withDead(count);
  await stopClock(world.pool);
  return world;
}

test("replays each job once, in batches, and keeps what became of each", async () => {
  const { url, pool, events, operations: elsewhere } = await withDead(450);
  const { ukemi } = makeUkemi(url);
  const runs: string[] = [];
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => {
    runs.push(event.id);
    if (event.id === "evt_0007") throw terminal("still broken");
  });
  await ukemi.work();
  const { operations } = ukemi.operate;
  const made = await operations.create(
    { ...REPLAY, filter: { handler: HANDLER, errorClass: "TypeError" } },
    MANDATE,
  );
  expect(made).toMatchObject({
    name: "after the fix",
    kind: "replay",
    reason: "the cause is mended",
    actor: "test:jane",
    tenants: null,
    selection: { filter: { handler: HANDLER, error_class: "TypeError" } },
    rate_per_second: null,
    canary: false,
    failure_limit: 0.1,
    total: 450,
    created_at: expect.any(Date),
  });
  await untilDone(operations, made.id);
  expect(runs.toSorted()).toEqual(events);
  const shown = await elsewhere.show(made.id);
  expect(shown).toMatchObject({
    state: "done",
    progress: 1,
    counts: { waiting: 0, replayed: 0, done: 449, dead: 1, dropped: 0, skipped: 0, gone: 0 },
    at_work: [],
    waits_for: null,
    estimated_end_at: null,
    started_at: expect.any(Date),
    finished_at: expect.any(Date),
  });
  expect(shown.ended_per_second).toBeGreaterThan(0);
  expect(await countItems(pool, made.id)).toEqual({ done: 449, dead: 1 });
  expect((await elsewhere.items(made.id, { state: "dead" })).items).toEqual([
    {
      position: 8,
      job: expect.any(Number),
      state: "dead",
      handler: HANDLER,
      queue: "default",
      event: expect.any(String),
      event_id: "evt_0007",
      tenant: null,
      error_class: "Terminal",
      message: "still broken",
      changed_at: expect.any(Date),
    },
  ]);
  const audit = await readAudit(pool);
  expect(audit[0]).toMatchObject({
    actor: "test:jane",
    role: "operator",
    action: "operation.created",
    target: made.id,
    details: { reason: "the cause is mended", name: "after the fix", total: 450, canary: false },
  });
  const replayed = audit.filter((row) => row.action === "job.replayed");
  expect(new Set(replayed.map((row) => row.target)).size).toBe(450);
  expect(replayed).toHaveLength(450);
  for (const row of replayed) {
    expect(row).toMatchObject({
      actor: "test:jane",
      details: { reason: "the cause is mended", operation: made.id },
    });
  }
  expect(audit.at(-1)).toMatchObject({
    actor: "system:operation",
    role: "system",
    action: "operation.done",
    target: made.id,
    details: { counts: { done: 449, dead: 1 } },
  });
});

test("begins at once in the process that made it, and also where another made it", async () => {
  const { url, operations: elsewhere, ids } = await withDead(2);
  const { ukemi } = makeUkemi(url);
  const runs: string[] = [];
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => void runs.push(event.id));
  await ukemi.work();
  await ukemi.operate.operations.create({ ...REPLAY, ids: [ids.get("evt_0000")!] }, MANDATE);
  await until(() => runs.length === 1, "the first to run");
  await elsewhere.create({ ...REPLAY, ids: [ids.get("evt_0001")!] }, MANDATE);
  await until(() => runs.length === 2, "the second to run");
});

test("drops as many as are meant, and nothing else", async () => {
  const { pool, operations, ids } = await byHand(230);
  const kept = ids.get("evt_0229")!;
  await pool.query("update ukemi.jobs set error_class = 'Other' where id = $1", [kept]);
  const made = await operations.create(
    { kind: "drop", name: "test payments", filter: { errorClass: "TypeError" } },
    MANDATE,
  );
  expect(made).toMatchObject({ total: 229, failure_limit: null });
  await stepNow(pool);
  expect(await operations.show(made.id)).toMatchObject({ state: "done", counts: { dropped: 229 } });
  const jobs = await readJobs(pool);
  expect(jobs.filter((job) => job.state === "cancelled")).toHaveLength(229);
  expect(jobs.find((job) => Number(job.id) === kept)).toMatchObject({ state: "dead" });
});

test("says before what it would touch, and how long it would take", async () => {
  const { pool, operations } = await byHand(30);
  await removeBodies(pool, ["evt_0003"]);
  expect(await operations.preview({ kind: "replay", filter: { queue: "default" }, rate: 4 })).toEqual({
    count: 30,
    without_body: 1,
    groups: [{ handler: HANDLER, error_class: "TypeError", count: 30, without_body: 1, workers: 0 }],
    in_operation: 0,
    seconds: 7.5,
    most: 100_000,
  });
  await operations.create({ ...REPLAY, filter: { event: "evt_0001" }, rate: 1 }, MANDATE);
  expect(await operations.preview({ kind: "drop", all: true })).toMatchObject({
    in_operation: 1,
    seconds: null,
  });
});

test("refuses what cannot be, with the parameter's name", async () => {
  const { pool, operations } = await byHand(1);
  const cases: [given: object, message: string][] = [
    [{ name: " " }, '"name" must be text of 1 to 100 characters'],
    [{ name: "x".repeat(101) }, '"name" must be'],
    [{ kind: "retry" }, '"kind" must be replay or drop'],
    [{ rate: 0 }, '"rate" must be a number of items per second from 0.001 to 10000'],
    [{ rate: Number.NaN }, '"rate"'],
    [{ rate: 10_001 }, '"rate"'],
    [{ canary: "yes" }, '"canary" must be true or false'],
    [{ failureLimit: 1.1 }, '"failureLimit" must be a share from 0 to 1'],
    [{ failureLimit: -0.1 }, '"failureLimit"'],
    [{ kind: "drop", canary: true }, '"canary" is for replays'],
    [{ kind: "drop", failureLimit: 0.5 }, '"failureLimit" is for replays'],
    [{ all: undefined }, '"all" must be true'],
  ];
  for (const [given, message] of cases) {
    await expect(operations.create({ ...ALL, ...given }, MANDATE)).rejects.toMatchObject({
      code: "invalid_parameter",
      message: expect.stringContaining(message),
    });
  }
  await expect(operations.create({ ...REPLAY, filter: {} }, MANDATE)).rejects.toThrow("at least one field");
  await expect(operations.create({ ...REPLAY, filter: { tenant: "nobody" } }, MANDATE)).rejects.toThrow(
    "matches no dead letter",
  );
  await expect(operations.create({ ...REPLAY, ids: [999] }, MANDATE)).rejects.toThrow(
    "matches no dead letter",
  );
  await expect(operations.create(ALL, { actor: "jane", reason: "" })).rejects.toThrow('"reason"');
  for (const act of [operations.show, operations.items, ...both(operations)]) {
    for (const id of ["nope", "0198c0de-0000-7000-8000-000000000000"]) {
      await expect(act(id)).rejects.toMatchObject({ code: "not_found" });
    }
  }
  for (const page of [{ limit: 0 }, { limit: 201 }, { cursor: "x" }, { state: "x" as never }]) {
    await expect(operations.list(page)).rejects.toMatchObject({ code: "invalid_parameter" });
  }
  expect((await pool.query("select from ukemi.operation_items")).rowCount).toBe(0);
  expect(await readAudit(pool)).toEqual([]);
});

function both({ abort, resume }: ReturnType<typeof operateOn>["operations"]) {
  return [(id: string) => abort(id, MANDATE), (id: string) => resume(id, MANDATE)];
}

test("refuses more than one operation can have, and says to narrow it", async () => {
  const { pool } = await byHand(12);
  const operations = createOperations({
    open: () => Promise.resolve(pool),
    read: (work) => readWithin(pool, 5000, work),
    itemsMax: 11,
  });
  await expect(operations.create(ALL, MANDATE)).rejects.toMatchObject({
    code: "invalid_parameter",
    message: expect.stringContaining("matches more than 11 dead letters"),
  });
  expect((await pool.query("select from ukemi.operation_items")).rowCount).toBe(0);
  await operateOn(pool).dead.drop({ filter: { event: "evt_0000" } }, MANDATE);
  expect(await operations.create(ALL, MANDATE)).toMatchObject({ total: 11 });
});

test("makes nothing, aborts nothing and goes no step when the audit fails", async () => {
  const { pool, operations, events } = await byHand(3);
  const made = await operations.create({ ...ALL, rate: 1 }, MANDATE);
  await stepNow(pool);
  await refuseAudit(pool, "operation.created");
  await expect(
    operations.create({ kind: "drop", name: "again", filter: { event: events[0]! } }, MANDATE),
  ).rejects.toThrow();
  await pool.query("drop function refuse_audit cascade");
  await refuseAudit(pool, "operation.aborted");
  await expect(operations.abort(made.id, MANDATE)).rejects.toThrow("the audit is full");
  expect(await operations.show(made.id)).toMatchObject({ state: "running" });
  await pool.query("drop function refuse_audit cascade");
  await refuseAudit(pool, "job.replayed");
  await look(pool);
  expect(await operations.show(made.id)).toMatchObject({ counts: { waiting: 2, replayed: 1 } });
  expect((await readJobs(pool)).filter((job) => job.state === "dead")).toHaveLength(2);
});

test("one whose step fails does not hold up the others", async () => {
  const { pool, operations, ids } = await byHand(4);
  const broken = await operations.create({ ...REPLAY, ids: [ids.get("evt_0000")!] }, MANDATE);
  await pool.query(`
    create function refuse_job() returns trigger language plpgsql as $$ begin raise exception 'not this one'; end $$;
    create trigger refuse_job before update on ukemi.jobs
      for each row when (old.id = ${ids.get("evt_0000")}) execute function refuse_job()`);
  const sound = await operations.create({ ...REPLAY, ids: [ids.get("evt_0001")!] }, MANDATE);
  await stepNow(pool, [], 10);
  expect((await operations.show(sound.id)).counts).toMatchObject({ waiting: 0, replayed: 1 });
  expect(await operations.show(broken.id)).toMatchObject({
    counts: { waiting: 1 },
    fault: "not this one (SQLSTATE P0001)",
    waits_for: "Its last step failed, and is tried again: not this one (SQLSTATE P0001).",
  });
  await pool.query("drop function refuse_job cascade");
  await pass(pool, 5001);
  await stepNow(pool);
  expect(await operations.show(broken.id)).toMatchObject({
    fault: null,
    counts: { waiting: 0, replayed: 1 },
  });
});

test("says when no process runs it", async () => {
  const { pool, operations } = await byHand(1);
  const { id } = await operations.create(ALL, MANDATE);
  await pass(pool, 16_000);
  const shown = await operations.show(id);
  expect(shown.waits_for).toBe("No process runs it: start a worker or a server on this database.");
  expect(shown.overdue_seconds).toBeGreaterThanOrEqual(16);
  await operations.abort(id, MANDATE);
  expect(await operations.show(id)).toMatchObject({ overdue_seconds: 0, waits_for: null });
});

test("the canary goes from one to ten to all, and each waits until the stage before has ended", async () => {
  const { pool, operations } = await byHand(40);
  const { id } = await operations.create({ ...ALL, canary: true }, MANDATE);
  await stepNow(pool);
  await look(pool);
  expect(await operations.show(id)).toMatchObject({
    stage: "one",
    counts: { waiting: 39, replayed: 1 },
    estimated_end_at: null,
    at_work: [{ delay: "no_worker", handler: HANDLER, queue: "default", count: 1, next_at: null }],
    waits_for: `The canary waits for 1 item to end: 1 for ${HANDLER}, which no live worker has.`,
  });
  await endJobs(pool);
  await look(pool);
  expect(await operations.show(id)).toMatchObject({
    stage: "ten",
    counts: { waiting: 29, replayed: 10, done: 1 },
  });
  await endJobs(pool, ["evt_0001"], 9);
  await look(pool);
  await look(pool);
  expect(await operations.show(id)).toMatchObject({
    state: "running",
    stage: "ten",
    counts: { waiting: 29, replayed: 1, done: 9, dead: 1 },
  });
  await endJobs(pool);
  await look(pool);
  expect(await operations.show(id)).toMatchObject({
    stage: "all",
    counts: { waiting: 0, replayed: 29, dead: 1 },
  });
  await endJobs(pool);
  await look(pool);
  expect(await operations.show(id)).toMatchObject({ state: "done", counts: { done: 39, dead: 1 } });
});

test("stops by itself when the first one dies again, tells a person, and the rest is untouched", async () => {
  const { url, pool } = await withDead(30);
  const alerts: Alert[] = [];
  const { ukemi, lines } = makeUkemi(url, { onAlert: (alert) => alerts.push(alert) });
  const runs: string[] = [];
  let mended = false;
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => {
    runs.push(event.id);
    if (!mended) throw terminal("still broken");
  });
  await ukemi.work();
  const { operations } = ukemi.operate;
  const { id } = await operations.create({ ...ALL, canary: true }, MANDATE);
  await until(async () => (await operations.show(id)).state === "stopped", "the operation to stop");
  const message = "1 of 1 died again in the canary's first stage, where none may.";
  expect(await operations.show(id)).toMatchObject({ stop_reason: message, counts: { waiting: 29, dead: 1 } });
  await until(() => alerts.some((alert) => alert.kind === "operation_stopped"), "the alert");
  expect(alerts.filter((alert) => alert.kind === "operation_stopped")).toEqual([
    { kind: "operation_stopped", operation: id, name: "after the fix", tenants: null, message },
  ]);
  expect(lines().find((line) => line.alert === "operation_stopped")).toMatchObject({
    operation: id,
    reason: message,
  });
  expect((await readAudit(pool)).at(-1)).toMatchObject({
    actor: "system:operation",
    action: "operation.stopped",
    target: id,
    details: { reason: message, counts: { waiting: 29, dead: 1 } },
  });
  expect(runs).toEqual(["evt_0000"]);
  mended = true;
  expect(await operations.resume(id, MANDATE)).toEqual({ id, state: "running", changed: true });
  await untilDone(operations, id);
  expect(runs.toSorted()).toEqual(numbered(30));
  expect((await operations.show(id)).counts).toMatchObject({ done: 29, dead: 1 });
});

test("stops in the stage of ten above the limit, whatever the order in which they end", async () => {
  const { pool, operations } = await byHand(40);
  const { id } = await operations.create({ ...ALL, canary: true }, MANDATE);
  await stepNow(pool);
  await endJobs(pool);
  await look(pool);
  // one of the first two: a share of a half, and of the eleven it may still be the only one
  await endJobs(pool, ["evt_0001"], 1);
  await look(pool);
  expect(await operations.show(id)).toMatchObject({ state: "running", counts: { done: 1, dead: 1 } });
  await endJobs(pool, ["evt_0002"], 1);
  await look(pool);
  expect(await operations.show(id)).toMatchObject({
    state: "stopped",
    stop_reason: "2 of 3 died again: 66.7 % is above the limit of 10 %.",
  });
  // what was at work goes on to its end, and is still noticed
  await endJobs(pool);
  await look(pool);
  expect((await operations.show(id)).counts).toMatchObject({ waiting: 29, replayed: 0, done: 9, dead: 2 });
  expect((await readChanges(pool)).size).toBe(11);
  // after the stop failures count anew, and the canary begins again
  await operations.resume(id, MANDATE);
  await look(pool);
  expect(await operations.show(id)).toMatchObject({ stage: "one", counts: { waiting: 28, replayed: 1 } });
  for (let stage = 0; stage < 3; stage++) {
    await endJobs(pool);
    await look(pool);
  }
  expect(await operations.show(id)).toMatchObject({ state: "done", counts: { done: 38, dead: 2 } });
});

test("stops in the last stage too, as soon as the share is above the limit", async () => {
  const { pool, operations } = await byHand(1300);
  const alerts: Alert[] = [];
  const { id } = await operations.create({ ...ALL, failureLimit: 0.2 }, MANDATE);
  await stepNow(pool, alerts as never);
  // no more than a thousand are at work at once: what comes after a failure can be held back
  expect((await operations.show(id)).counts).toMatchObject({ waiting: 300, replayed: 1000 });
  expect((await operations.show(id)).waits_for).toContain(
    "1000 items are at work, and no more may be at once",
  );
  await endJobs(pool, numbered(9), 9);
  await look(pool, alerts as never);
  expect(await operations.show(id), "nine say nothing").toMatchObject({
    state: "running",
    counts: { waiting: 291 },
  });
  await endJobs(pool, [], 36);
  await look(pool, alerts as never);
  expect(await operations.show(id), "9 of 45: just the limit").toMatchObject({ state: "running" });
  await endJobs(pool, ["evt_0045"], 1);
  await look(pool, alerts as never);
  expect(await operations.show(id)).toMatchObject({
    state: "stopped",
    stop_reason: "10 of 46 died again: 21.7 % is above the limit of 20 %.",
  });
  expect(alerts).toHaveLength(1);
  const before = await readChanges(pool);
  await look(pool);
  expect((await readChanges(pool)).size).toBe(before.size);
});

test("keeps its rate on the database's clock", async () => {
  const { pool, operations } = await byHand(120);
  const { id } = await operations.create({ ...ALL, rate: 20 }, MANDATE);
  let elapsedMs = 0;
  const counts: number[] = [];
  for (const ms of [0, 10, 30, 10, 50, 100, 700, 100, 100, 100, 50, 50, 200, 3000, 200, 100, 10, 40]) {
    await pass(pool, ms);
    elapsedMs += ms;
    await stepNow(pool);
    const done = (await readChanges(pool)).size;
    expect(done, `after ${elapsedMs} ms`).toBeLessThanOrEqual(1 + (20 * elapsedMs) / 1000);
    counts.push(done);
  }
  // every 50 ms one; time that nobody used is made up for by a quarter of a second's worth at the most
  expect(counts).toEqual([1, 1, 1, 2, 3, 5, 11, 13, 15, 17, 18, 19, 23, 29, 33, 35, 35, 36]);
  await pass(pool, 250);
  while ((await operations.show(id)).counts.waiting > 0) {
    await pass(pool, 200);
    await stepNow(pool);
    const before = counts.at(-1)!;
    counts.push((await readChanges(pool)).size);
    expect(counts.at(-1)! - before).toBeLessThanOrEqual(6);
  }
  expect((await operations.show(id)).counts).toMatchObject({ replayed: 120 });
});

test("foresees its end, no sooner than the rate allows", async () => {
  const { pool, operations } = await byHand(50);
  const { id } = await operations.create({ ...ALL, rate: 2 }, MANDATE);
  await stepNow(pool);
  await endJobs(pool);
  await pass(pool, 1000);
  await stepNow(pool);
  const { estimated_end_at: end, counts, progress, ended_per_second: speed } = await operations.show(id);
  const { rows } = await pool.query<{ ms: number }>(
    "select extract(epoch from ukemi.now())::float8 * 1000 as ms",
  );
  expect(end!.getTime() - rows[0]!.ms).toBeGreaterThan((counts.waiting / 2) * 1000 - 5000);
  expect(progress).toBe(1 / 50);
  expect(speed).toBeGreaterThan(0);
});

test("after an abort no further item is touched, and a resume goes on where it was", async () => {
  const { pool, operations } = await byHand(450);
  const { id } = await operations.create({ ...ALL, rate: 100 }, MANDATE);
  await stepNow(pool);
  await look(pool);
  const before = (await operations.show(id)).counts;
  expect(before.waiting).toBeGreaterThan(0);
  expect(before.replayed).toBeGreaterThan(1);
  expect(await operations.abort(id, { actor: "test:joe", reason: "wrong ones" })).toEqual({
    id,
    state: "aborted",
    changed: true,
  });
  expect(await operations.abort(id, MANDATE)).toEqual({ id, state: "aborted", changed: false });
  await look(pool);
  await look(pool);
  expect(await operations.show(id)).toMatchObject({
    state: "aborted",
    stop_reason: "aborted by test:joe: wrong ones",
    counts: before,
    estimated_end_at: null,
    waits_for: null,
  });
  await endJobs(pool);
  await look(pool);
  expect((await operations.show(id)).counts).toMatchObject({
    waiting: before.waiting,
    done: before.replayed,
  });
  expect(await operations.resume(id, MANDATE)).toMatchObject({ changed: true });
  expect(await operations.resume(id, MANDATE)).toEqual({ id, state: "running", changed: false });
  while ((await operations.show(id)).state === "running") {
    await look(pool);
    await endJobs(pool);
  }
  expect(await operations.show(id)).toMatchObject({ state: "done", stop_reason: null, stopped_at: null });
  expect([...(await readChanges(pool)).values()]).toEqual(Array.from({ length: 450 }, () => 1));
  expect(await operations.abort(id, MANDATE)).toEqual({ id, state: "done", changed: false });
  expect(await operations.resume(id, MANDATE)).toEqual({ id, state: "done", changed: false });
  const actions = (await readAudit(pool)).filter((row) => String(row.action).startsWith("operation."));
  expect(actions.map((row) => [row.action, row.actor])).toEqual([
    ["operation.created", "test:jane"],
    ["operation.aborted", "test:joe"],
    ["operation.resumed", "test:jane"],
    ["operation.done", "system:operation"],
  ]);
});

test("an abort waits for the batch that is under way, and the batch that comes too late does nothing", async () => {
  const { pool, operations, ids } = await withDead(10);
  const { id } = await operations.create({ ...ALL, rate: 1 }, MANDATE);
  const waiting = async () =>
    (
      await pool.query(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      )
    ).rowCount;
  // the batch is held up at its job by somebody else
  const other = await pool.connect();
  await other.query("begin");
  await other.query("select from ukemi.jobs where id = $1 for update", [ids.get("evt_0000")]);
  const stepping = stepNow(pool, [], 1);
  await until(async () => (await waiting()) === 1, "the batch to wait");
  const aborting = operations.abort(id, MANDATE);
  await until(async () => (await waiting()) === 2, "the abort to wait");
  await other.query("commit");
  other.release();
  await stepping;
  await aborting;
  const { counts, state } = await operations.show(id);
  expect([state, counts.waiting, counts.replayed]).toEqual(["aborted", 9, 1]);
  await look(pool);
  expect((await readChanges(pool)).size).toBe(1);
});

test("two processes at once do each item once", async () => {
  const { url, pool, events } = await withDead(900);
  const runs: string[] = [];
  const work = async () => {
    const { ukemi } = makeUkemi(url);
    ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => void runs.push(event.id));
    await ukemi.work();
    return ukemi.operate.operations;
  };
  const [first, second] = await Promise.all([work(), work()]);
  const halves = await Promise.all([
    first.create({ ...REPLAY, filter: { queue: "default" }, canary: true }, MANDATE),
    // made in the same moment, it may see the other's items or not
    second.create({ ...REPLAY, filter: { handler: HANDLER } }, MANDATE).catch(() => undefined),
  ]);
  for (const made of halves) {
    if (made) await untilDone(first, made.id);
  }
  await untilDrained(pool);
  expect(runs.toSorted()).toEqual(events);
  expect([...(await readChanges(pool)).values()]).toEqual(events.map(() => 1));
});

test("leaves alone what waits in another operation, and says so", async () => {
  const { pool, operations, ids } = await byHand(5);
  const first = await operations.create(
    { ...REPLAY, ids: [1, 2].map((i) => ids.get(`evt_000${i}`)!), rate: 1 },
    MANDATE,
  );
  await expect(operations.create({ ...REPLAY, filter: { event: "evt_0001" } }, MANDATE)).rejects.toThrow(
    "let it end, or abort it first",
  );
  const second = await operations.create(ALL, MANDATE);
  expect(second).toMatchObject({ total: 5, counts: { waiting: 3, skipped: 2 } });
  expect((await operations.items(second.id, { state: "skipped" })).items).toMatchObject([
    { event_id: "evt_0001", message: `it waits in the operation ${first.id} already` },
    { event_id: "evt_0002" },
  ]);
  // one that does not run holds nothing back, and comes too late when it is resumed
  await operations.abort(first.id, MANDATE);
  const third = await operations.create({ ...REPLAY, filter: { event: "evt_0001" } }, MANDATE);
  await look(pool);
  await endJobs(pool, ["evt_0001"]);
  await operations.resume(first.id, MANDATE);
  await look(pool);
  await look(pool);
  expect((await operations.items(first.id)).items).toMatchObject([
    {
      state: "skipped",
      message: "it was replayed elsewhere after it had been chosen, and died anew",
    },
    { state: "replayed" },
  ]);
  expect(await operations.show(third.id)).toMatchObject({ state: "done", counts: { dead: 1 } });
  expect([...(await readChanges(pool)).values()]).toEqual([1, 1, 1, 1, 1]);
});

test("skips what somebody dropped, what is no longer dead, and what has no body, each with its reason", async () => {
  const { pool, operations, dead, ids } = await byHand(6);
  const gone = ids.get("evt_0004")!;
  const { id } = await operations.create({ ...ALL, canary: true }, MANDATE);
  await dead.drop({ filter: { event: "evt_0000" } }, MANDATE);
  await removeBodies(pool, ["evt_0001"]);
  await dead.replay({ filter: { event: "evt_0002" } }, MANDATE);
  await pool.query("delete from ukemi.jobs where id = $1", [gone]);
  await stepNow(pool);
  // what is skipped says nothing about the cause: the first stage still has one to try
  expect(await operations.show(id)).toMatchObject({
    stage: "one",
    counts: { skipped: 3, replayed: 1, waiting: 2 },
  });
  for (let i = 0; i < 3; i++) {
    await endJobs(pool);
    await look(pool);
  }
  expect(await operations.show(id)).toMatchObject({
    state: "done",
    counts: { skipped: 3, gone: 1, done: 2 },
  });
  expect((await operations.items(id)).items.map((item) => [item.state, item.message])).toEqual([
    ["skipped", "it was not dead any more when its turn came"],
    ["skipped", "its event's body is gone"],
    ["skipped", "it was not dead any more when its turn came"],
    ["done", null],
    ["gone", "there is no such job any more"],
    ["done", null],
  ]);
});

test("one that died again and was dropped by hand counts as failed, and one removed since as ended", async () => {
  const { pool, operations, dead, ids } = await byHand(3);
  const { id } = await operations.create(ALL, MANDATE);
  await stepNow(pool);
  await endJobs(pool, ["evt_0000"]);
  await dead.drop({ filter: { event: "evt_0000" } }, MANDATE);
  await pool.query("delete from ukemi.jobs where id = $1", [ids.get("evt_0001")]);
  await look(pool);
  expect(
    (await operations.items(id)).items.map((item) => [item.state, item.error_class, item.message]),
  ).toEqual([
    ["dead", "StillBroken", "it died again and was dropped since: still broken"],
    ["gone", null, "it ended, and was removed since"],
    ["done", null, null],
  ]);
  expect((await operations.show(id)).state).toBe("done");
});

test("waits for a queue that is paused in the middle, says so, and ends when it is resumed", async () => {
  const { url, pool } = await withDead(30);
  const { ukemi } = makeUkemi(url);
  const runs: string[] = [];
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => void runs.push(event.id));
  await ukemi.work();
  const { operations, queues } = ukemi.operate;
  await queues.pause("default", MANDATE);
  const { id } = await operations.create({ ...ALL, canary: true }, MANDATE);
  await until(async () => (await operations.show(id)).counts.replayed === 1, "the first to be replayed");
  expect(await operations.show(id)).toMatchObject({
    state: "running",
    at_work: [{ delay: "queue_paused", queue: "default", count: 1 }],
    waits_for: "The canary waits for 1 item to end: 1 in the paused queue default.",
  });
  expect(runs).toEqual([]);
  await queues.resume("default", MANDATE);
  await untilDone(operations, id);
  expect(runs.toSorted()).toEqual(numbered(30));
  expect((await readAudit(pool)).filter((row) => row.action === "job.replayed")).toHaveLength(30);
});

test("says what its jobs wait for: a retry, a key", async () => {
  const store = await createDatabase();
  await register(store.pool, { keyBy: "tenant", ordered: true });
  await makeDead(store, ["evt_1", "evt_2", "evt_3"], { tenant: "org_1" });
  const { ukemi } = makeUkemi(store.url);
  ukemi.on(
    "stripe",
    "payment_intent.succeeded",
    () => {
      throw retryAfter(3_600_000);
    },
    { key: "tenant", ordered: true },
  );
  await ukemi.work();
  const { operations } = ukemi.operate;
  const { id } = await operations.create({ ...ALL, failureLimit: 1 }, MANDATE);
  await until(
    async () => (await operations.show(id)).at_work.some(({ delay }) => delay === "later"),
    "the first to be tried again",
  );
  expect((await operations.show(id)).at_work).toMatchObject([
    { delay: "key", count: 2, next_at: null },
    { delay: "later", count: 1, next_at: expect.any(Date) },
  ]);
  expect((await operations.show(id)).waits_for).toBe(
    "Waits for the last 3 items to end: 2 behind others of their key, 1 to be tried again later.",
  );
});

test("jobs of one key run one after the other in the order in which they were made, across batches", async () => {
  const store = await createDatabase();
  await register(store.pool, { keyBy: "tenant" });
  const events = numbered(250);
  await makeDead(store, events, { tenant: "org_1" });
  const { ukemi } = makeUkemi(store.url);
  const runs: string[] = [];
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => void runs.push(event.id), { key: "tenant" });
  await ukemi.work();
  const { id } = await ukemi.operate.operations.create(ALL, MANDATE);
  await untilDone(ukemi.operate.operations, id);
  expect(runs).toEqual(events);
});

test("a bound caller is not told which operation its job waits in", async () => {
  const store = await createDatabase();
  await register(store.pool);
  const ids = await makeDead(store, ["evt_1", "evt_2"], { tenant: "a" });
  const { operations } = operateOn(store.pool);
  const first = await operations.create({ ...REPLAY, ids: [ids.get("evt_1")!], rate: 1 }, MANDATE);
  const bound = { tenants: ["a"] };
  for (const asked of [{ all: true }, { ids: [...ids.values()] }] as const) {
    const made = await operations.create({ ...REPLAY, ...asked, ...bound }, MANDATE);
    const { items } = await operations.items(made.id, bound);
    expect(items).toMatchObject([
      { state: "skipped", message: "it waits in another operation already" },
      { state: "waiting", message: null },
    ]);
    expect(JSON.stringify(items)).not.toContain(first.id);
    await operations.abort(made.id, MANDATE);
  }
});

test("a bound caller's operation touches only its tenants' jobs, and only such callers see it", async () => {
  const store = await createDatabase();
  await register(store.pool);
  await makeDead(store, ["evt_a"], { tenant: "a" });
  const others = await makeDead(store, ["evt_b"], { tenant: "b" });
  await makeDead(store, ["evt_none"]);
  const { operations } = operateOn(store.pool);
  const bound = { tenants: ["a"] };
  expect(await operations.preview({ kind: "replay", all: true, ...bound })).toMatchObject({ count: 1 });
  const mine = await operations.create({ ...ALL, ...bound }, MANDATE);
  expect(mine).toMatchObject({ total: 1, tenants: ["a"] });
  await expect(operations.create({ ...REPLAY, filter: { tenant: "b" }, ...bound }, MANDATE)).rejects.toThrow(
    "matches no dead letter",
  );
  await expect(
    operations.create({ ...REPLAY, ids: [...others.values()], ...bound }, MANDATE),
  ).rejects.toThrow("matches no dead letter");
  await expect(operations.create({ ...ALL, tenants: [] }, MANDATE)).rejects.toThrow("matches no dead letter");
  await stepNow(store.pool);
  expect(await readOutcomes(store.pool)).toEqual({ evt_a: "pending", evt_b: "failed", evt_none: "failed" });
  await makeDead(store, ["evt_a2"], { tenant: "a" });
  const named = await operations.create({ ...REPLAY, filter: { tenant: "a" }, tenants: ["a", "b"] }, MANDATE);
  const everyone = await operations.create(
    { kind: "drop", name: "rest", filter: { event: "evt_none" } },
    MANDATE,
  );
  const seen = async (tenants?: readonly string[]) =>
    (await operations.list({ tenants })).items.map((item) => item.id);
  expect(await seen()).toEqual([everyone.id, named.id, mine.id]);
  expect(await seen(["a", "b", "c"])).toEqual([named.id, mine.id]);
  expect(await seen(["a"])).toEqual([mine.id]);
  expect(await seen(["b"])).toEqual([]);
  expect(await seen([])).toEqual([]);
  for (const tenants of [["b"], []]) {
    for (const ask of [
      () => operations.show(mine.id, { tenants }),
      () => operations.items(mine.id, { tenants }),
      () => operations.abort(mine.id, MANDATE, { tenants }),
      () => operations.resume(mine.id, MANDATE, { tenants }),
      () => operations.show(everyone.id, { tenants }),
    ]) {
      await expect(ask()).rejects.toMatchObject({ code: "not_found" });
    }
  }
  expect(await operations.abort(named.id, MANDATE, { tenants: ["b", "a"] })).toMatchObject({ changed: true });
});

test("an id that a bound caller names and that is another tenant's is as one that is not there", async () => {
  const store = await createDatabase();
  await register(store.pool);
  const mine = await makeDead(store, ["evt_a"], { tenant: "a" });
  const others = await makeDead(store, ["evt_b"], { tenant: "b" });
  const { operations } = operateOn(store.pool);
  const ids = [...mine.values(), ...others.values(), 999_999];
  const { id } = await operations.create({ ...REPLAY, ids, tenants: ["a"] }, MANDATE);
  await stepNow(store.pool);
  const { items } = await operations.items(id, { tenants: ["a"] });
  expect(
    items.map(({ state, message, handler, event_id: event }) => [state, message, handler, event]),
  ).toEqual([
    ["replayed", null, HANDLER, "evt_a"],
    ["gone", "there is no such job", null, null],
    ["gone", "there is no such job", null, null],
  ]);
  expect(await readOutcomes(store.pool)).toEqual({ evt_a: "pending", evt_b: "failed" });
});

test("lists operations and items in pages that miss and repeat nothing", async () => {
  const { pool, operations, ids, events } = await byHand(7);
  const made: string[] = [];
  for (const event of events) {
    made.push((await operations.create({ ...REPLAY, ids: [ids.get(event)!], rate: 1 }, MANDATE)).id);
    await pass(pool, 5);
  }
  await operations.abort(made[3]!, MANDATE);
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await operations.list({ limit: 3, cursor });
    seen.push(...page.items.map((item) => item.id));
    cursor = page.cursor;
  } while (cursor !== undefined);
  expect(seen).toEqual(made.toReversed());
  expect((await operations.list({ state: "aborted" })).items.map((item) => item.id)).toEqual([made[3]]);
  const other = await byHand(7);
  const { id } = await other.operations.create(ALL, MANDATE);
  const first = await other.operations.items(id, { limit: 5 });
  const second = await other.operations.items(id, { limit: 5, cursor: first.cursor });
  expect([...first.items, ...second.items].map((item) => item.event_id)).toEqual(other.events);
  expect(second.cursor).toBeUndefined();
});

test("a job that an erasure cancelled is gone, and no failure of the operation", async () => {
  const { pool, operations } = await byHand(12);
  const { bodies } = operateOn(pool);
  const made = await operations.create({ ...ALL, failureLimit: 0 }, MANDATE);
  await stepNow(pool);
  await bodies.erase({ event: "evt_0003", includeUnfinished: true }, MANDATE);
  await endJobs(pool);
  await look(pool);
  expect(await operations.show(made.id)).toMatchObject({
    state: "done",
    counts: { done: 11, dead: 0, gone: 1 },
  });
  const { items } = await operations.items(made.id, { state: "gone" });
  expect(items).toMatchObject([{ event_id: "evt_0003", error_class: null }]);
  expect(items[0]!.message).toBe("it was cancelled by an erasure before it ended");
});

test("whoever only watches lets others make the steps, and makes them where nobody does", async () => {
  const { pool, operations } = await withDead(3);
  const stop = new AbortController();
  const round = createOperationRound({ alert: () => {}, tell: () => {}, patienceMs: 3000 });
  const made = await operations.create({ ...ALL, kind: "drop", name: "x" }, MANDATE);
  const making = makeRounds(
    [round],
    () => Promise.resolve(pool),
    () => {},
    stop.signal,
  );
  try {
    // it has been due from the first moment, and for longer than a round that is not patient would wait
    await new Promise((resolve) => setTimeout(resolve, 500));
    // (asked for together: on a slow machine it may be its turn between two questions)
    const { rows } = await pool.query<{ ms: number; waiting: number }>(
      "select extract(epoch from ukemi.now() - created_at)::float8 * 1000 as ms, waiting from ukemi.operations",
    );
    if (rows[0]!.ms < 3000) expect(rows[0]!.waiting).toBe(3);
    await untilDone(operations, made.id);
  } finally {
    stop.abort();
    await making;
  }
  const { rows } = await pool.query<{ ms: number }>(
    "select extract(epoch from finished_at - created_at)::float8 * 1000 as ms from ukemi.operations",
  );
  expect(rows[0]!.ms).toBeGreaterThanOrEqual(3000);
});
