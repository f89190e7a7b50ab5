// Claims that go on behind the last one: the same jobs in the same order, nothing twice, nobody forgotten, and at a cost that
// does not grow with what was claimed before.
import { expect, test } from "vitest";
import { claimJobs } from "../../src/storage/claim.ts";
import { uuidv7 } from "../../src/storage/ids.ts";
import type { Queryable } from "../../src/storage/postgres.ts";
import { countBlocks } from "../support/buffers.ts";
import { createDatabase } from "../support/database.ts";
import { insertJobs } from "../support/worked.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained } from "../support/work.ts";

const take = (client: Queryable, most: number, behind?: string, handlers = ["step"]) =>
  claimJobs(client, {
    queue: "default",
    handlers,
    most,
    alone: false,
    behind,
    afterTenant: "",
    worker: uuidv7(Date.now()),
    token: uuidv7(Date.now()),
    leaseMs: 600_000,
  });

const numbers = (jobs: readonly { readonly id: string }[]) => jobs.map(({ id }) => Number(id));
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);

test("goes on in the same order, and where less is left begins again with everybody", async () => {
  const { pool } = await createDatabase();
  await insertJobs(pool, { count: 25, handler: "step" });
  const first = await take(pool, 10);
  expect(numbers(first)).toEqual(range(1, 10));
  const second = await take(pool, 10, first.at(-1)!.id);
  expect(numbers(second)).toEqual(range(11, 20));
  expect(second.map(({ attempt, recoveries, handler }) => [attempt, recoveries, handler])).toEqual(
    second.map(() => [0, 0, "step"]),
  );
  await insertJobs(pool, { count: 2, handler: "step", tenant: "'other'", priority: 9 });
  // five are left behind the twentieth, and two elsewhere
  expect(numbers(await take(pool, 10, second.at(-1)!.id))).toEqual([26, 27, ...range(21, 25)]);
  expect(await take(pool, 10, second.at(-1)!.id)).toEqual([]);
});

test("takes only what is ready, of the same handler, tenant and priority, while there is enough of it", async () => {
  const { pool } = await createDatabase();
  await insertJobs(pool, { count: 10, handler: "step", tenant: "'a'" });
  await insertJobs(pool, { count: 10, handler: "step", tenant: "'b'" });
  await insertJobs(pool, { count: 10, handler: "other", tenant: "'a'" });
  await insertJobs(pool, { count: 10, handler: "step", tenant: "'a'", priority: -1 });
  await pool.query("update ukemi.jobs set recoveries = 1 where id = 6");
  const jobs = await take(pool, 4, "5", ["step", "other"]);
  expect(numbers(jobs)).toEqual(range(7, 10));
});

test("heeds a pause, and a job that is gone", async () => {
  const { pool } = await createDatabase();
  await insertJobs(pool, { count: 20, handler: "step" });
  const first = await take(pool, 5);
  await pool.query("insert into ukemi.queues (name, paused) values ('default', true)");
  expect(await take(pool, 5, first.at(-1)!.id)).toEqual([]);
  await pool.query("update ukemi.queues set paused = false");
  expect(numbers(await take(pool, 5, "4711"))).toEqual(range(6, 10));
});

test("two that go on behind the same job share what is there", async () => {
  const { pool } = await createDatabase();
  await insertJobs(pool, { count: 41, handler: "step" });
  const { id } = (await take(pool, 1))[0]!;
  const taken = await Promise.all(Array.from({ length: 4 }, () => take(pool, 10, id)));
  expect(numbers(taken.flat()).toSorted((a, b) => a - b)).toEqual(range(2, 41));
});

test("looks at no more blocks after thousands were claimed before", async () => {
  const { url } = await createDatabase();
  const { client, count } = await countBlocks(url);
  await insertJobs(client, { count: 4000, handler: "step" });
  let last: string | undefined;
  const goOn = async () => void (last = (await take(client, 20, last)).at(-1)!.id);
  for (let claims = 0; claims < 10; claims += 1) await goOn();
  const early = await count(goOn);
  for (let claims = 0; claims < 150; claims += 1) await goOn();
  const late = await count(goOn);
  console.log("blocks of a claim of 20 after 200 and after 3,200 jobs:", early, late);
  expect(late).toBeLessThan(2 * early + 50);
});

test("a worker that is never told of anything runs every job once, whoever's it is", async () => {
  const { url, pool } = await createDatabase();
  const ran: string[] = [];
  const { ukemi } = makeUkemi(url, { concurrency: 8, pollMs: 60_000 });
  ukemi.on("stripe", "payment_intent.succeeded", ({ event }) => void ran.push(event.id));
  ukemi.task<number>("step", ({ payload }) => void ran.push(`step ${payload}`));
  await ukemi.start();
  const ids = range(1, 300).map((number) => `evt_${number}`);
  // a flood of one kind, and a few of others among it
  await storeElsewhere(url, ids.slice(0, 200));
  for (const payload of range(1, 20)) {
    await ukemi.enqueue(null, "step", payload, { tenant: `t${payload % 3}`, priority: payload % 2 });
  }
  await storeElsewhere(url, ids.slice(200));
  await ukemi.work();
  await untilDrained(pool);
  expect(ran.toSorted()).toEqual([...ids, ...range(1, 20).map((number) => `step ${number}`)].toSorted());
  expect((await readJobs(pool)).every(({ state }) => state === "done")).toBe(true);
});
