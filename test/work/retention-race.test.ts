// Pruning beside everything else: a long reader only delays it, and nobody who reads a body that stays misses it.
import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { claimJobs } from "../../src/storage/claim.ts";
import { openPool, transaction, type Pool } from "../../src/storage/postgres.ts";
import { replaceMonth, listOldMonths } from "../../src/storage/retention-months.ts";
import { removeBodies as removeStep, FIRST_EVENT } from "../../src/storage/retention-batches.ts";
import { takeRetention } from "../../src/storage/retention.ts";
import { routeBatch } from "../../src/storage/route.ts";
import { createDatabase } from "../support/database.ts";
import { HANDLER, makeDead, MANDATE, operateOn, register } from "../support/dead.ts";
import { addFinished, bodiesOf, finishJobs, letPass, LIMITS, retentionOn } from "../support/retention.ts";
import { poolerProgram, startPooler } from "../support/pgbouncer.ts";
import { until } from "../support/until.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";

const RUN = {
  id: randomUUID(),
  actor: "system:retention",
  role: "system" as const,
  reason: "test",
  limits: LIMITS,
};

function morePool(url: string): Pool {
  const pool = openPool(url, { max: 8, name: "test more" });
  onTestFinished(() => pool.end());
  return pool;
}

/** Waits until somebody waits for a lock. */
const untilWaited = (pool: Pool, query: string) =>
  until(
    async () =>
      (
        await pool.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like $1",
          [`%${query}%`],
        )
      ).rowCount! > 0,
    `${query} waits for a lock`,
  );

test("lets a long reader delay the month and nothing else: events are stored meanwhile, and it goes afterwards", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await storeElsewhere(url, ["evt_old"]);
  await finishJobs(pool);
  await letPass(pool, 200);
  const more = morePool(url);
  const reader = await more.connect();
  await reader.query("begin; select count(*) from ukemi.event_bodies");
  const retention = retentionOn(more);
  const stop = new AbortController();
  const pruning = retention.prune(MANDATE, { signal: stop.signal });
  await untilWaited(pool, "detach partition");
  for (let index = 0; index < 10; index++) await storeElsewhere(url, [`evt_${index}`]);
  expect((await readJobs(pool)).filter((job) => job.state === "ready")).toHaveLength(10);
  // another reader is not held up for good either
  await more.query("select count(*) from ukemi.event_bodies");
  stop.abort();
  expect(await pruning).toMatchObject({ jobs: 0, bodies: 0, months: [], stopped: true });
  expect(await bodiesOf(pool)).toContain("evt_old");
  await reader.query("commit");
  reader.release();
  expect(await retention.prune(MANDATE)).toMatchObject({ jobs: 1, bodies: 1, held_up: [], stopped: false });
  expect(await bodiesOf(pool)).toHaveLength(10);
});

test("says which months somebody held up all the time, and that they are due again soon", async () => {
  const { url, pool } = await createDatabase();
  await letPass(pool, 130);
  const more = morePool(url);
  const reader = await more.connect();
  // this one is not in its way; a lock on one old month is
  const [first] = await listOldMonths(pool, 90);
  await reader.query(`begin; lock table ukemi.${first!.table} in share update exclusive mode`);
  const result = await retentionOn(more).prune(MANDATE);
  expect(result.held_up).toEqual([first!.month]);
  const { rows } = await pool.query<{ soon: boolean }>(
    "select due_at < ukemi.now() + interval '6 minutes' as soon from ukemi.retention",
  );
  expect(rows).toEqual([{ soon: true }]);
  await reader.query("commit");
  reader.release();
  expect((await retentionOn(more).prune(MANDATE)).months.map(({ month }) => month)).toEqual([first!.month]);
});

test("a route under way when the month is copied, and one that comes before the swap, both keep their bodies", async () => {
  const { url, pool } = await createDatabase();
  await storeElsewhere(url, ["evt_early"], { type: "early" });
  await storeElsewhere(url, ["evt_late"], { type: "late" });
  await addFinished(pool, 300);
  await letPass(pool, 200);
  await register(pool, { pattern: "*" });
  const more = morePool(url);
  const [month] = await listOldMonths(pool, 90);
  const routing = (type: string) => ({
    since: new Date(0),
    until: new Date(Date.now() + 86_400_000),
    type,
    after: FIRST_EVENT,
    most: 10,
    actor: "a",
    reason: "r",
  });
  // its jobs have ids already when the pruner asks for the newest, and are not committed
  const early = await more.connect();
  await early.query("begin");
  expect(await routeBatch(early, routing("early"))).toMatchObject({ jobs: 1 });
  const replacing = replaceMonth(more, RUN, month!);
  await untilWaited(pool, "pg_advisory_xact_lock");
  // a reader holds up the swap, so that the second route falls between the copy and the swap
  const reader = await more.connect();
  await reader.query("begin; select from ukemi.event_bodies limit 1");
  await early.query("commit");
  early.release();
  await untilWaited(pool, "detach partition");
  expect(await transaction(more, (client) => routeBatch(client, routing("late")))).toMatchObject({ jobs: 1 });
  await reader.query("commit");
  reader.release();
  expect(await replacing).toMatchObject({ bodies: 300, kept: 2 });
  expect(await bodiesOf(pool)).toEqual(["evt_early", "evt_late"]);
});

test("a route that waits while bodies are removed one by one makes no job without a body", async () => {
  const { url, pool } = await createDatabase();
  await pool.query("update ukemi.clock set shift = '400 days'");
  await storeElsewhere(url, ["evt_1"]);
  await letPass(pool, 200);
  await register(pool, { pattern: "*" });
  const more = morePool(url);
  expect(await takeRetention(pool, RUN, false)).toMatchObject({ taken: true });
  const client = await more.connect();
  await client.query("begin");
  const step = await removeStep(client, RUN, { table: "event_bodies_default", after: FIRST_EVENT, days: 90 });
  expect(step.removed).toBe(1);
  const until = new Date(Date.now() + 1000 * 86_400_000);
  const route = operateOn(more).events.route({ since: new Date(0), until }, MANDATE);
  await untilWaited(pool, "pg_advisory_xact_lock_shared");
  await client.query("commit");
  client.release();
  expect(await route).toMatchObject({ events: 0, jobs: 0 });
  expect(await readJobs(pool)).toEqual([]);
});

test("claims that run while months are swapped, again and again, never miss a body; nor is an event lost", async () => {
  const store = await createDatabase();
  const { url, pool } = store;
  await register(pool);
  const old = Array.from({ length: 200 }, (_, index) => `evt_old_${index}`);
  await makeDead(store, old);
  await addFinished(pool, 900);
  await letPass(pool, 200);
  const more = morePool(url);
  const [month] = await listOldMonths(pool, 90);
  const swapping = new AbortController();
  let swaps = 0;
  const swapped = (async () => {
    while (!swapping.signal.aborted) {
      if (await replaceMonth(more, RUN, month!, swapping.signal)) swaps += 1;
    }
  })();
  // an independent log: what was acknowledged as stored, and what claims saw
  const stored: string[] = [];
  const storing = (async () => {
    for (let index = 0; index < 60; index++) {
      await storeElsewhere(url, [`evt_new_${index}`]);
      stored.push(`evt_new_${index}`);
    }
  })();
  await operateOn(more).dead.replay({ all: true }, MANDATE);
  const seen = new Map<string, boolean>();
  while (seen.size < old.length + 60) {
    const jobs = await claimJobs(more, {
      queue: "default",
      handlers: [HANDLER],
      most: 3,
      alone: false,
      afterTenant: "",
      worker: randomUUID(),
      token: randomUUID(),
      leaseMs: 600_000,
    });
    for (const job of jobs) seen.set(job.event!.eventId, job.event!.body !== null);
  }
  await storing;
  swapping.abort();
  await swapped;
  console.log(`${swaps} swaps beside ${seen.size} claims`);
  expect(swaps).toBeGreaterThan(1);
  expect([...seen].filter(([, hadBody]) => !hadBody)).toEqual([]);
  expect([...seen.keys()].toSorted()).toEqual([...old, ...stored].toSorted());
  expect(await bodiesOf(pool)).toEqual([...old, ...stored].toSorted());
});

test.skipIf(poolerProgram === undefined)("prunes through a transaction pooler, one at a time", async () => {
  const store = await createDatabase();
  const { url, pool } = store;
  await register(pool);
  await makeDead(store, ["evt_dead"]);
  await storeElsewhere(url, ["evt_done"]);
  await finishJobs(pool);
  await addFinished(pool, 300);
  await letPass(pool, 200);
  const pooled = morePool(await startPooler(url));
  const [one, two] = await Promise.allSettled([
    retentionOn(pooled).prune(MANDATE),
    retentionOn(pooled).prune(MANDATE),
  ]);
  const answers = [one, two].map((result) =>
    result.status === "fulfilled" ? "pruned" : (result.reason as { code: string }).code,
  );
  expect(answers.toSorted()).toEqual(["contended", "pruned"]);
  expect(await bodiesOf(pool)).toEqual(["evt_dead"]);
  expect((await readJobs(pool)).map((job) => job.state)).toEqual(["dead"]);
});

test("a worker goes on with old jobs while a person prunes", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  const ids = Array.from({ length: 40 }, (_, index) => `evt_${index}`);
  await storeElsewhere(url, ids);
  await addFinished(pool, 400);
  await letPass(pool, 200);
  const { ukemi } = makeUkemi(url);
  const runs: string[] = [];
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => void runs.push(event.id));
  const pruned = ukemi.operate.retention.prune(MANDATE);
  await ukemi.work();
  await pruned;
  const jobs = await untilDrained(pool);
  expect(jobs.filter((job) => job.state !== "done")).toEqual([]);
  expect(runs.toSorted()).toEqual(ids.toSorted());
});
