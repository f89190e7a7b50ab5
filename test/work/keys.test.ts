// One running job for each key, whoever works and whatever fails, and at the same cost however many wait.
import { expect, test } from "vitest";
import { retryAfter } from "../../src/index.ts";
import { claimJobs, type Job } from "../../src/storage/claim.ts";
import { promoteKeys, promoteStranded } from "../../src/storage/due.ts";
import { uuidv7 } from "../../src/storage/ids.ts";
import type { Queryable } from "../../src/storage/postgres.ts";
import { settleManyDone } from "../../src/storage/settle.ts";
import { countBlocks } from "../support/buffers.ts";
import { createDatabase } from "../support/database.ts";
import { seededRandom } from "../support/seed.ts";
import { until } from "../support/until.ts";
import { createWorked, insertJobs, moveClock } from "../support/worked.ts";
import { makeUkemi, readJobs, storeElsewhere, untilDrained, type TestUkemi } from "../support/work.ts";

const refTo = (id: string) => ({ refs: [{ kind: "payment_intent", id }] });
const byIntent = { key: { ref: "payment_intent" } } as const;

test("never runs two jobs of a key at once, be they events or tasks, in one process or in two", async () => {
  const { url, pool } = await createDatabase();
  const random = seededRandom("jobs of a key");
  const worked = createWorked();
  const ukemis = [makeUkemi(url, { concurrency: 8 }), makeUkemi(url, { concurrency: 8 })];
  for (const { ukemi } of ukemis) {
    ukemi.on(
      "stripe",
      "payment_intent.succeeded",
      ({ event, job, tx }) =>
        worked.during(event.id, job.key!, async () => {
          // some use their transaction, some only take time, some fail once
          if (random.below(2) === 0) await tx.query("select pg_sleep(0.001)");
          else await new Promise(setImmediate);
          if (job.attempt === 1 && random.below(10) === 0) throw new Error("once");
        }),
      { ...byIntent, retry: { retries: 1, delaysMs: [1] } },
    );
    ukemi.task<string>("note", ({ payload, job }) =>
      worked.during(payload, job.key!, () => new Promise(setImmediate)),
    );
  }
  await Promise.all(ukemis.map(({ ukemi }) => ukemi.work()));
  const keys = ["pi_1", "pi_2", "pi_3", "pi_4"];
  const names = Array.from({ length: 30 }, (_, index) => index);
  for (const name of names) {
    const { ukemi } = ukemis[name % 2]!;
    await Promise.all(
      keys.flatMap((key) => [
        storeElsewhere(url, [`evt_${key}_${name}`], refTo(key)),
        ukemi.enqueue(null, "note", `note ${key} ${name}`, { key }),
      ]),
    );
  }
  const jobs = await untilDrained(pool);
  expect(jobs).toHaveLength(2 * keys.length * names.length);
  expect(new Set(jobs.map(({ state }) => state))).toEqual(new Set(["done"]));
  expect(worked.overlaps).toEqual([]);
  expect(new Set(worked.ended).size).toBe(jobs.length);
});

test("runs the jobs of an ordered key in the order of their arrival, also while the first is retried", async () => {
  const { url, pool } = await createDatabase();
  const worked = createWorked();
  const work = ({ ukemi }: TestUkemi) => {
    const run = (name: string, key: string, attempt: number) =>
      worked.during(name, key, async () => {
        await new Promise(setImmediate);
        if (name.endsWith("0") && attempt < 3) throw new Error("not the first time");
      });
    const retry = { retries: 3, delaysMs: [30] };
    ukemi.on("stripe", "payment_intent.succeeded", ({ event, job }) => run(event.id, job.key!, job.attempt), {
      ...byIntent,
      ordered: true,
      retry,
    });
    ukemi.task<string>("step", ({ payload, job }) => run(payload, job.key!, job.attempt), { retry });
    return ukemi.work();
  };
  const first = makeUkemi(url);
  await Promise.all([work(first), work(makeUkemi(url))]);
  const names = Array.from({ length: 21 }, (_, index) => index);
  for (const name of names) {
    await storeElsewhere(url, [`evt_${name}`], refTo("pi_1"));
    await first.ukemi.enqueue(null, "step", `step_${name}`, { key: "cart", ordered: true });
  }
  const jobs = await untilDrained(pool);
  expect(new Set(jobs.map(({ state }) => state))).toEqual(new Set(["done"]));
  expect(worked.overlaps).toEqual([]);
  for (const prefix of ["evt_", "step_"]) {
    const tries = names.flatMap((name) =>
      Array.from({ length: name % 10 === 0 ? 3 : 1 }, () => prefix + name),
    );
    expect(worked.begun.filter((name) => name.startsWith(prefix))).toEqual(tries);
  }
});

test("lets the next job of an unordered key go on while the first waits for its retry", async () => {
  const { url, pool } = await createDatabase();
  const worked = createWorked();
  const { ukemi } = makeUkemi(url);
  ukemi.task<string>("step", ({ payload, job }) =>
    worked.during(payload, job.key!, async () => {
      if (payload === "first" && job.attempt === 1) throw retryAfter(3_600_000);
    }),
  );
  await ukemi.work();
  for (const name of ["first", "second", "third"]) await ukemi.enqueue(null, "step", name, { key: "cart" });
  await until(
    async () => (await readJobs(pool)).filter(({ state }) => state === "done").length === 2,
    "two to end",
  );
  expect(worked.ended).toEqual(["first", "second", "third"]);
  expect((await readJobs(pool))[0]).toMatchObject({ state: "scheduled", attempt: 1 });
  await moveClock(pool, "2 hours");
  expect((await untilDrained(pool))[0]).toMatchObject({ state: "done", attempt: 2 });
});

const take = (client: Queryable, most: number): Promise<Job[]> =>
  claimJobs(client, {
    queue: "default",
    handlers: ["step"],
    most,
    alone: false,
    afterTenant: "",
    worker: uuidv7(Date.now()),
    token: uuidv7(Date.now()),
    leaseMs: 600_000,
  });

const finish = (client: Queryable, jobs: readonly Job[]) => {
  const attempt = { durationMs: 1, worker: uuidv7(Date.now()), traceId: null };
  return settleManyDone(
    client,
    attempt.worker,
    jobs.map((job) => ({ job, attempt })),
  );
};

test("mends a key whose process died between its commit and the promotion", async () => {
  const { url, pool } = await createDatabase();
  // one died after it had stored, one after it had finished the first of three
  await insertJobs(pool, { count: 1, handler: "step", key: "stored", state: "waiting" });
  await insertJobs(pool, { count: 3, handler: "step", key: "finished", state: "waiting" });
  expect(await promoteKeys(pool, [{ queue: "default", key: "finished" }])).toBe(1);
  await finish(pool, await take(pool, 10));
  expect((await readJobs(pool)).map(({ state }) => state).toSorted()).toEqual([
    "done",
    "waiting",
    "waiting",
    "waiting",
  ]);
  const worked = createWorked();
  const { ukemi } = makeUkemi(url);
  ukemi.task("step", ({ job }) => worked.during(job.id, job.key!, async () => {}));
  await pool.query("insert into ukemi.job_payloads select id, 'null' from ukemi.jobs");
  await ukemi.work();
  const jobs = await untilDrained(pool);
  expect(jobs.map(({ state, attempt }) => [state, attempt])).toEqual(jobs.map(() => ["done", 1]));
  expect(worked.ended).toHaveLength(3);
});

test("claims, promotes and sweeps at the same cost whether 100 or 20,000 jobs of a key wait", async () => {
  const { url } = await createDatabase();
  const { client, count } = await countBlocks(url);
  await insertJobs(client, { count: 1, handler: "step", key: "long" });
  await insertJobs(client, { count: 100, handler: "step", key: "long", state: "waiting" });
  await insertJobs(client, { count: 400, handler: "step" });
  const long = [{ queue: "default", key: "long" }];

  /** The key's own job goes first, then others beside it; each step is one that workers take all the time. */
  const costs = async () => ({
    claim: await count(() => take(client, 20)),
    finish: await count(async () => {
      const { rows } = await client.query<{ id: string; token: string }>(
        "select id, lease_token as token from ukemi.jobs where state = 'running'",
      );
      await finish(client, rows as unknown as Job[]);
    }),
    promote: await count(() => promoteKeys(client, long)),
    promoteHeld: await count(() => promoteKeys(client, long)),
    sweep: await count(() => promoteStranded(client)),
  });
  // workers live long: the plans that a session settles on while little waits must do when much waits
  for (let round = 0; round < 12; round += 1) {
    await promoteKeys(client, long);
    await promoteStranded(client);
  }
  await costs();
  const short = await costs();
  await insertJobs(client, { count: 19_900, handler: "step", key: "long", state: "waiting" });
  await costs();
  // the chain moves on: what has ended must not be walked over again
  for (let round = 0; round < 100; round += 1) {
    await finish(client, await take(client, 1));
    await promoteKeys(client, long);
  }
  const cost = await costs();
  console.log("blocks with 100 and with 20,000 jobs of a key", short, cost);
  for (const step of ["claim", "promote", "promoteHeld", "sweep"] as const) {
    expect(cost[step], step).toBeLessThan(2 * short[step] + 100);
  }
});

test("one tenant's key never holds up another's", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  const ran: string[] = [];
  ukemi.task<string>(
    "step",
    ({ payload, job }) => {
      expect(job.key).toBe("order-1");
      if (payload === "a") throw new Error("again and again");
      ran.push(payload);
    },
    { retry: { retries: 5, delaysMs: [60_000] } },
  );
  await ukemi.work();
  for (const tenant of ["a", "b", "c"]) {
    await ukemi.enqueue(null, "step", tenant, { tenant, key: "order-1", ordered: true });
  }
  await until(() => ran.length === 2, "the others to run");
  const { rows } = await pool.query("select state from ukemi.jobs where tenant = 'a'");
  expect(rows).toEqual([{ state: "scheduled" }]);
});
