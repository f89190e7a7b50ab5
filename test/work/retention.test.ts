// Rows that go when they are old: finished jobs and attempts. What is unfinished, dead or needed to know a duplicate stays.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { createRetentionRound } from "../../src/operate/retention.ts";
import { inTransaction } from "../../src/operate/transaction.ts";
import { removeOperations } from "../../src/storage/retention-batches.ts";
import { endRetention, takeRetention } from "../../src/storage/retention.ts";
import { createDatabase } from "../support/database.ts";
import { HANDLER, makeDead, MANDATE, operateOn, readAudit, readOutcomes, register } from "../support/dead.ts";
import { stepNow } from "../support/operations.ts";
import { countRows, finishJobs, letPass, LIMITS, retentionOn } from "../support/retention.ts";
import { until } from "../support/until.ts";
import { makeUkemi, readJobs, storeElsewhere } from "../support/work.ts";

const states = async (pool: Parameters<typeof readJobs>[0]) =>
  (await readJobs(pool)).map((job) => `${job.event_id} ${job.state}`);

test("removes finished jobs when they are old enough, and never one that is dead or unfinished", async () => {
  const store = await createDatabase();
  const { url, pool } = store;
  await register(pool);
  await makeDead(store, ["evt_dead"]);
  await storeElsewhere(url, ["evt_done", "evt_cancelled", "evt_late", "evt_ready", "evt_waiting"]);
  await storeElsewhere(url, ["evt_scheduled", "evt_running"]);
  await finishJobs(pool, ["evt_done"]);
  await finishJobs(pool, ["evt_cancelled"], "cancelled");
  const byEvent = "event = (select id from ukemi.events where event_id = $1)";
  await pool.query(`update ukemi.jobs set state = 'waiting', key = 'k' where ${byEvent}`, ["evt_waiting"]);
  await pool.query(`update ukemi.jobs set state = 'scheduled' where ${byEvent}`, ["evt_scheduled"]);
  await pool.query(
    `update ukemi.jobs set state = 'running', lease_until = ukemi.now() + interval '1 year',
       lease_token = gen_random_uuid(), worker = gen_random_uuid() where ${byEvent}`,
    ["evt_running"],
  );
  await letPass(pool, 29);
  await finishJobs(pool, ["evt_late"]);
  const retention = retentionOn(pool);
  expect(await retention.prune(MANDATE)).toMatchObject({ jobs: 0, attempts: 0 });
  await letPass(pool, 2);
  expect(await retention.preview()).toMatchObject({
    jobs: { count: 2, exact: true },
    attempts: { count: 2, exact: true },
  });
  expect(await retention.prune(MANDATE)).toMatchObject({ jobs: 2, attempts: 2, stopped: false });
  expect(await states(pool)).toEqual([
    "evt_dead dead",
    "evt_late done",
    "evt_ready ready",
    "evt_waiting waiting",
    "evt_scheduled scheduled",
    "evt_running running",
  ]);
  // made long ago, finished later: the next walk from the beginning meets it again
  await letPass(pool, 29);
  expect(await retention.prune(MANDATE)).toMatchObject({ jobs: 1, attempts: 1 });
  expect(await countRows(pool, "attempts")).toBe(1);
  expect(await countRows(pool, "events")).toBe(8);
  expect(await readOutcomes(pool)).toMatchObject({ evt_done: "success", evt_dead: "failed" });
});

test("keeps a finished job while another of its event is dead: what the event comes to is read from both", async () => {
  const store = await createDatabase();
  const { url, pool } = store;
  await register(pool);
  await register(pool, { name: "other", pattern: "payment_intent.*" });
  await storeElsewhere(url, ["evt_1"]);
  await pool.query(
    `update ukemi.jobs set state = 'done', finished_at = ukemi.now(), attempt = 1 where subscription = 'other'`,
  );
  await makeDead(store, []);
  await letPass(pool, 100);
  const retention = retentionOn(pool);
  expect(await retention.prune(MANDATE)).toMatchObject({ jobs: 0 });
  const dead = (await readJobs(pool)).find((job) => job.state === "dead");
  await operateOn(pool).dead.drop({ ids: [Number(dead!.id)] }, MANDATE);
  // had the done one gone before, this would say skipped
  expect(await readOutcomes(pool)).toEqual({ evt_1: "success" });
  await letPass(pool, 31);
  expect(await retention.prune(MANDATE)).toMatchObject({ jobs: 2 });
  expect(await readOutcomes(pool)).toEqual({ evt_1: "success" });
});

test("knows a duplicate of an event whose job and body are gone, and never makes a job for it again", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await storeElsewhere(url, ["evt_1"]);
  await finishJobs(pool);
  await letPass(pool, 200);
  expect(await retentionOn(pool).prune(MANDATE)).toMatchObject({ jobs: 1, bodies: 1 });
  await storeElsewhere(url, ["evt_1"]);
  await register(pool, { name: "late", pattern: "*" });
  const { events } = operateOn(pool);
  const since = new Date(0);
  const until = new Date(Date.now() + 1000 * 86_400_000);
  expect(await events.route({ since, until }, MANDATE)).toMatchObject({ events: 0, jobs: 0 });
  expect(await readJobs(pool)).toEqual([]);
  expect(await countRows(pool, "events")).toBe(1);
  expect(await readOutcomes(pool)).toEqual({ evt_1: "success" });
});

test("removes a task with its payload and its dedupe key, which may then be used again", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  ukemi.task("remind", () => {});
  await ukemi.start();
  const ask = () => ukemi.enqueue(null, "remind", { to: "jane" }, { dedupe: "once" });
  await ask();
  await finishJobs(pool);
  expect(await countRows(pool, "job_payloads")).toBe(1);
  await letPass(pool, 29);
  await retentionOn(pool).prune(MANDATE);
  await ask();
  expect(await countRows(pool, "jobs")).toBe(1);
  await letPass(pool, 2);
  expect(await retentionOn(pool).prune(MANDATE)).toMatchObject({ jobs: 1 });
  expect(await countRows(pool, "job_payloads")).toBe(0);
  await ask();
  expect(await countRows(pool, "jobs")).toBe(1);
});

test("removes attempts by their own limit, but not those of dead and unfinished jobs", async () => {
  const store = await createDatabase();
  const { url, pool } = store;
  await register(pool);
  await makeDead(store, ["evt_dead"]);
  await storeElsewhere(url, ["evt_done", "evt_ready"]);
  await finishJobs(pool, ["evt_done"]);
  await pool.query(
    "insert into ukemi.attempts (job, number, outcome) select id, 1, 'retry' from ukemi.jobs where state = 'ready'",
  );
  await pool.query("insert into ukemi.attempts (job, number, outcome) values (4711, 1, 'retry')");
  await letPass(pool, 8);
  const retention = retentionOn(pool, { attemptDays: 7, jobDays: 0 });
  expect((await retention.preview()).attempts).toEqual({ count: 2, exact: true });
  expect(await retention.prune(MANDATE)).toMatchObject({ jobs: 0, attempts: 2 });
  const { rows } = await pool.query("select outcome from ukemi.attempts order by id");
  expect(rows).toEqual([{ outcome: "dead" }, { outcome: "retry" }]);
});

test("keeps everything for ever where the limits are 0, and prunes nothing where they are not known", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await storeElsewhere(url, ["evt_1"]);
  await finishJobs(pool);
  await letPass(pool, 5000);
  const forever = retentionOn(pool, { bodyDays: 0, attemptDays: 0, jobDays: 0 });
  expect(await forever.preview()).toMatchObject({ months: [], jobs: { count: 0 }, attempts: { count: 0 } });
  expect(await forever.prune(MANDATE)).toMatchObject({ jobs: 0, attempts: 0, bodies: 0, months: [] });
  expect([await countRows(pool, "jobs"), await countRows(pool, "event_bodies")]).toEqual([1, 1]);
  await expect(operateOn(pool).retention.prune(MANDATE)).rejects.toMatchObject({ code: "invalid_option" });
  await expect(forever.prune({ actor: "jane", reason: "" })).rejects.toMatchObject({
    code: "invalid_parameter",
  });
  expect(await readAudit(pool)).toEqual([]);
});

test("walks many rows in small steps, says how far it is, and goes on where it was stopped", async () => {
  const { pool } = await createDatabase();
  await pool.query(
    `insert into ukemi.jobs (queue, kind, subscription, state, max_attempts, policy, run_at, created_at, finished_at)
     select 'q', 'task', 't', 'done', 4, 'quick', ukemi.now(), ukemi.now(), ukemi.now() from generate_series(1, 3500)`,
  );
  await letPass(pool, 31);
  const retention = retentionOn(pool);
  const stop = new AbortController();
  const seen: string[] = [];
  const stopped = await retention.prune(MANDATE, {
    signal: stop.signal,
    onProgress({ part, done, total }) {
      seen.push(`${part} ${done}/${total}`);
      if (done >= 2000) stop.abort();
    },
  });
  expect(stopped).toMatchObject({ jobs: 2000, stopped: true });
  expect(seen.slice(0, 2)).toEqual(["jobs 100/3500", "jobs 200/3500"]);
  expect(await countRows(pool, "jobs")).toBe(1500);
  const round = createRetentionRound(LIMITS);
  await round.run(pool, new AbortController().signal);
  expect(await round.run(pool, new AbortController().signal)).toBeGreaterThan(0);
  expect(await countRows(pool, "jobs"), "not due so soon after a stop").toBe(1500);
  await letPass(pool, 1);
  await round.run(pool, new AbortController().signal);
  expect(await countRows(pool, "jobs")).toBe(0);
  const audit = (await readAudit(pool)).filter((row) => row.target === "rows");
  expect(audit).toMatchObject([
    {
      actor: "test:jane",
      role: "operator",
      action: "retention.pruned",
      details: { reason: "the cause is mended", jobs: 2000 },
    },
    { actor: "system:retention", role: "system", details: { jobs: 1500 } },
  ]);
});

test("estimates what it has not counted, and says so", async () => {
  const { pool } = await createDatabase();
  await pool.query(
    `insert into ukemi.jobs (queue, kind, subscription, state, max_attempts, policy, run_at, created_at, finished_at)
     select 'q', 'task', 't', 'done', 4, 'quick', ukemi.now(), ukemi.now(), ukemi.now() from generate_series(1, 12000)`,
  );
  await pool.query("analyze ukemi.jobs");
  await letPass(pool, 31);
  const { jobs } = await retentionOn(pool).preview();
  expect(jobs.exact).toBe(false);
  expect(jobs.count).toBeGreaterThan(6000);
  expect(jobs.count).toBeLessThan(24_000);
});

test("lets one process prune at a time; the second says who does, and ten processes prune once an hour together", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await storeElsewhere(url, ["evt_1"]);
  await finishJobs(pool);
  await letPass(pool, 200);
  const run = {
    id: randomUUID(),
    actor: "cli:joe",
    role: "operator" as const,
    reason: "space",
    limits: LIMITS,
  };
  expect(await takeRetention(pool, run, false)).toMatchObject({ taken: true });
  await expect(retentionOn(pool).prune(MANDATE)).rejects.toMatchObject({
    code: "contended",
    message: "Another process is pruning, on behalf of cli:joe.",
  });
  await endRetention(pool, run, 3_600_000);
  // a day later it is due: of ten that come, one prunes
  await letPass(pool, 1);
  const rounds = Array.from({ length: 10 }, () => createRetentionRound(LIMITS));
  const never = new AbortController().signal;
  await Promise.all(rounds.map((round) => round.run(pool, never)));
  await Promise.all(rounds.map((round) => round.run(pool, never)));
  const audit = await readAudit(pool);
  expect(audit.filter((row) => row.target === "rows")).toHaveLength(1);
  expect(await countRows(pool, "jobs")).toBe(0);
  // and the next hour's is not yet due
  await storeElsewhere(url, ["evt_2"]);
  await finishJobs(pool);
  const again = await rounds[0]!.run(pool, never);
  expect(again).toBeGreaterThan(60_000);
});

test("refuses the step of a run that another has replaced, and audits what the dead one removed in its name", async () => {
  const { pool } = await createDatabase();
  await pool.query(
    `insert into ukemi.jobs (queue, kind, subscription, state, max_attempts, policy, run_at, created_at, finished_at)
     select 'q', 'task', 't', 'done', 4, 'quick', ukemi.now(), ukemi.now(), ukemi.now() from generate_series(1, 20000)`,
  );
  await letPass(pool, 31);
  const other = {
    id: randomUUID(),
    actor: "cli:joe",
    role: "operator" as const,
    reason: "space",
    limits: LIMITS,
  };
  let takeover: Promise<{ taken: boolean }> | undefined;
  const replaced = retentionOn(pool).prune(MANDATE, {
    onProgress() {
      // as if it had not been heard of for long
      takeover ??= pool
        .query("update ukemi.retention set held_until = ukemi.now()")
        .then(() => takeRetention(pool, other, false));
    },
  });
  await expect(replaced).rejects.toMatchObject({ code: "contended" });
  expect(await takeover).toMatchObject({ taken: true });
  await endRetention(pool, other, 0);
  const gone = 20_000 - (await countRows(pool, "jobs"));
  expect(gone).toBeGreaterThan(0);
  expect(await readAudit(pool)).toMatchObject([{ actor: "test:jane", details: { jobs: gone } }]);
});

test("forgets workers that ended long ago, not those that live", async () => {
  const { pool } = await createDatabase();
  const insert = `insert into ukemi.workers (id, host, pid, version, handlers, queues, has_session, lease_ms, ended_at, end_reason)
    values (gen_random_uuid(), 'h', 1, '0', array['${HANDLER}'], '{}', false, 1000,`;
  await pool.query(`${insert} ukemi.now(), 'stopped')`);
  await pool.query(`${insert} null, null)`);
  await letPass(pool, 31);
  expect((await retentionOn(pool).preview()).workers).toEqual({ count: 1, exact: true });
  expect(await retentionOn(pool).prune(MANDATE)).toMatchObject({ workers: 1 });
  expect(await countRows(pool, "workers")).toBe(1);
});

test("forgets operations that ended long ago with their items, not those that somebody may go on with", async () => {
  const store = await createDatabase();
  const { pool } = store;
  await register(pool);
  const { operations } = operateOn(pool);
  const make = async (prefix: string, count: number) => {
    await makeDead(
      store,
      Array.from({ length: count }, (_, index) => `evt_${prefix}_${index}`),
    );
    return operations.create({ kind: "drop", name: prefix, all: true }, MANDATE);
  };
  const done = await make("done", 600);
  await until(async () => {
    await stepNow(pool);
    return (await operations.show(done.id)).state === "done";
  }, "the operation to be done");
  const aborted = await make("aborted", 3);
  await operations.abort(aborted.id, MANDATE);
  await operations.abort((await make("stopped", 2)).id, MANDATE);
  await pool.query("update ukemi.operations set state = 'stopped' where name = 'stopped'");
  const running = await make("running", 1);
  expect((await retentionOn(pool).preview()).operations).toEqual({ count: 0, exact: true });
  await letPass(pool, 31);
  expect((await retentionOn(pool).preview()).operations).toEqual({ count: 2, exact: true });
  expect(await retentionOn(pool, { jobDays: 0 }).prune(MANDATE)).toMatchObject({ operations: 0 });
  expect(await retentionOn(pool).prune(MANDATE)).toMatchObject({ operations: 2 });
  const left = await pool.query<{ name: string; items: number }>(
    `select o.name, count(i.*)::int as items
     from ukemi.operations o left join ukemi.operation_items i on i.operation = o.id group by 1 order by 1`,
  );
  expect(left.rows).toEqual([
    { name: "running", items: running.total },
    { name: "stopped", items: 5 },
  ]);
  expect((await pool.query("select from ukemi.operation_items")).rowCount).toBe(running.total + 5);
  expect((await readAudit(pool)).at(-1)).toMatchObject({
    action: "retention.pruned",
    details: { operations: 2 },
  });
});

test("an operation that is resumed while its items are being removed comes to its end", async () => {
  const store = await createDatabase();
  const { pool } = store;
  await register(pool);
  const { operations } = operateOn(pool);
  await makeDead(
    store,
    Array.from({ length: 150 }, (_, index) => `evt_${index}`),
  );
  const { id } = await operations.create({ kind: "drop", name: "x", all: true }, MANDATE);
  await operations.abort(id, MANDATE);
  await letPass(pool, 31);
  const run = { id: randomUUID(), actor: "cli:joe", role: "operator" as const, reason: "x", limits: LIMITS };
  await takeRetention(pool, run, false);
  const step = () => inTransaction(pool, (client) => removeOperations(client, run, LIMITS.jobDays));
  expect(await step()).toMatchObject({ removed: 0, ended: false });
  expect(await countRows(pool, "operation_items")).toBe(50);
  expect(await operations.resume(id, MANDATE)).toMatchObject({ changed: true });
  // it is somebody's again, and nothing of it can be done any more
  expect(await step()).toMatchObject({ removed: 0, ended: true });
  await stepNow(pool);
  expect(await operations.show(id)).toMatchObject({
    state: "done",
    fault: null,
    counts: { waiting: 0, dropped: 0, gone: 150 },
  });
  expect((await operateOn(pool).dead.preview({ all: true })).count).toBe(150);
});
