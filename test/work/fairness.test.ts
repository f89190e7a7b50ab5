// Who runs when: tenants in turn, higher priorities first, nothing early, nothing while paused. Judged by order, not time.
import { expect, test } from "vitest";
import { claimJobs } from "../../src/storage/claim.ts";
import { uuidv7 } from "../../src/storage/ids.ts";
import type { Queryable } from "../../src/storage/postgres.ts";
import { countBlocks } from "../support/buffers.ts";
import { createDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";
import { insertJobs, moveClock } from "../support/worked.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";

const idsOf = (tenant: string, count: number) =>
  Array.from({ length: count }, (_, index) => `evt_${tenant}_${index}`);

test(
  "one of a hundred tenants floods: each of the others is served within a few turns of all",
  { timeout: 120_000 },
  async () => {
    const { url, pool } = await createDatabase();
    const CONCURRENCY = 10;
    const EVENTS = 3;
    const HANDLERS = ["receipts", "ledger"];
    const tenants = Array.from({ length: 99 }, (_, index) => `t${String(index).padStart(2, "0")}`);
    const log: string[] = []; // the tenant of each job, in the order in which they began
    let held: Promise<unknown> | undefined;
    const ukemis = [
      makeUkemi(url, { concurrency: CONCURRENCY }),
      makeUkemi(url, { concurrency: CONCURRENCY }),
    ];
    for (const { ukemi } of ukemis) {
      for (const name of HANDLERS) {
        ukemi.on(
          "stripe",
          "payment_intent.succeeded",
          async ({ job }) => {
            log.push(job.tenant!);
            await held;
          },
          { name },
        );
      }
      await ukemi.work();
    }
    // half of them arrive behind the flood, and half while it is worked on; time stands still while they do
    for (const arriving of [tenants.slice(0, 50), tenants.slice(50)]) {
      const from = log.length;
      let release = () => {};
      held = new Promise<void>((resolve) => (release = resolve));
      if (from === 0) {
        for (let part = 0; part < 2; part += 1)
          await storeElsewhere(url, idsOf(`flood${part}`, 500), { tenant: "m flood" });
      }
      for (const tenant of arriving) await storeElsewhere(url, idsOf(tenant, EVENTS), { tenant });
      const arrived = log.length;
      release();
      const each = EVENTS * HANDLERS.length;
      const places = () =>
        new Map(arriving.map((tenant) => [tenant, log.flatMap((name, at) => (name === tenant ? [at] : []))]));
      await until(
        () => [...places().values()].every((list) => list.length === each),
        "every tenant to be served",
        45_000,
      );
      // each turn serves every stream once; as many turns as a tenant has jobs in one, and one for what was running
      const turn = (arriving.length + 1) * HANDLERS.length;
      const bound = arrived + 2 * EVENTS * turn + 4 * CONCURRENCY;
      const p95 = [...places().values()].map(
        (list) => list.toSorted((a, b) => a - b)[Math.ceil(0.95 * each) - 1]!,
      );
      console.log(
        `arrived at ${arrived}; p95 of the places from ${Math.min(...p95)} to ${Math.max(...p95)}, bound ${bound}`,
      );
      expect(Math.max(...p95)).toBeLessThanOrEqual(bound);
    }
    const jobs = await untilDrained(pool, 60_000);
    expect(jobs).toHaveLength((1000 + tenants.length * EVENTS) * HANDLERS.length);
    expect(log).toHaveLength(jobs.length);
  },
);

const take = (client: Queryable, most: number, handlers = ["step"]) =>
  claimJobs(client, {
    queue: "default",
    handlers,
    most,
    alone: false,
    afterTenant: "",
    worker: uuidv7(Date.now()),
    token: uuidv7(Date.now()),
    leaseMs: 600_000,
  });

test("a claim fills all its slots, however unevenly the jobs are spread over tenants", async () => {
  const { pool } = await createDatabase();
  await insertJobs(pool, { count: 100, handler: "step", tenant: "'a'", priority: 5 });
  await insertJobs(pool, { count: 1, handler: "step", tenant: "'b'", priority: 5 });
  await insertJobs(pool, { count: 100, handler: "step", tenant: "'c'" });
  const jobs = await take(pool, 10);
  expect(jobs).toHaveLength(10);
  // a lower priority has no turn while there is a higher one
  expect(jobs.filter(({ tenant }) => tenant === "a")).toHaveLength(9);
  expect(jobs.filter(({ tenant }) => tenant === "b")).toHaveLength(1);
});

test("runs higher priorities first", async () => {
  const { url, pool } = await createDatabase();
  const log: number[] = [];
  const { ukemi } = makeUkemi(url, { concurrency: 1 });
  ukemi.task<number>("step", ({ payload }) => void log.push(payload), { priority: 1 });
  const priorities = [0, 7, -3, 7, 32_767, 2, -32_767, 0, 2];
  for (const priority of priorities) await ukemi.enqueue(null, "step", priority, { priority });
  await ukemi.enqueue(null, "step", 1);
  await ukemi.work();
  await untilDrained(pool);
  expect(log).toEqual([...priorities, 1].toSorted((a, b) => b - a));
});

test("runs nothing of a paused queue, and everything after it is resumed", async () => {
  const { url, pool } = await createDatabase();
  const log: string[] = [];
  const { ukemi } = makeUkemi(url);
  ukemi.task<string>("shut", ({ payload }) => void log.push(payload), { queue: "shut" });
  ukemi.task<string>("open", ({ payload }) => void log.push(payload), { queue: "open" });
  await pool.query("insert into ukemi.queues (name, paused, reason) values ('shut', true, 'a test')");
  await ukemi.work();
  for (let round = 0; round < 3; round += 1) {
    await Promise.all(Array.from({ length: 5 }, () => ukemi.enqueue(null, "shut", "shut")));
    await ukemi.enqueue(null, "open", "open");
    await until(() => log.length === round + 1, "the open queue to go on");
  }
  expect(log).toEqual(["open", "open", "open"]);
  expect((await readJobs(pool)).filter(({ state }) => state === "ready")).toHaveLength(15);
  await pool.query("update ukemi.queues set paused = false, reason = null");
  await untilDrained(pool);
  expect(log).toHaveLength(18);
});

test("never runs a delayed job early", async () => {
  const { url, pool } = await createDatabase();
  const log: string[] = [];
  const early: unknown[] = [];
  const { ukemi } = makeUkemi(url);
  ukemi.task<string>("step", async ({ payload, job, tx }) => {
    const { rows } = await tx.query("select from ukemi.jobs where id = $1 and run_at > ukemi.now()", [
      job.id,
    ]);
    early.push(...rows);
    if (payload !== "marker") log.push(payload);
  });
  await ukemi.work();
  const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000);
  await ukemi.enqueue(null, "step", "an hour", { delayMs: 3_600_000 });
  await ukemi.enqueue(null, "step", "two hours", { runAt: inHours(2) });
  await ukemi.enqueue(null, "step", "three hours, by key", { runAt: inHours(3), key: "k" });
  await ukemi.enqueue(null, "step", "the past", { runAt: inHours(-1) });
  const steps: [shift: string, ran: string[]][] = [
    ["0 minutes", ["the past"]],
    ["59 minutes", []],
    ["61 minutes", ["an hour"]],
    ["119 minutes", []],
    ["121 minutes", ["two hours"]],
    ["179 minutes", []],
    ["181 minutes", ["three hours, by key"]],
  ];
  let jobs = 0;
  for (const [shift, ran] of steps) {
    await moveClock(pool, shift);
    // it comes due itself, behind whatever is due by then
    await ukemi.enqueue(null, "step", "marker", { delayMs: 1 });
    jobs += ran.length + 1;
    const ended = async () => (await readJobs(pool)).filter(({ state }) => state === "done").length;
    await until(async () => (await ended()) >= jobs, `what is due after ${shift} to end`);
    expect(log.splice(0), shift).toEqual(ran);
  }
  expect(early).toEqual([]);
});

test.for([
  { spread: "of one tenant", tenant: "'gone'" },
  { spread: "of a thousand tenants", tenant: "'gone ' || n % 1000" },
])("orphaned jobs $spread do not make the claim of others dearer", async ({ tenant }) => {
  const { url } = await createDatabase();
  const { client, count } = await countBlocks(url);
  await insertJobs(client, { count: 200, handler: "step", tenant: "'us ' || n % 10" });
  await insertJobs(client, { count: 20, handler: "removed", tenant });
  await take(client, 20);
  const few = await count(() => take(client, 20));
  await insertJobs(client, { count: 4980, handler: "removed", tenant });
  await take(client, 20);
  const many = await count(() => take(client, 20));
  console.log(`blocks with 20 and with 5,000 orphaned jobs ${tenant}:`, few, many);
  expect(many).toBeLessThan(2 * few + 100);
});
