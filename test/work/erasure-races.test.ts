// Erasure beside everything else: whoever meets it neither brings an event back nor writes words of it afterwards.
import { expect, onTestFinished, test } from "vitest";
import type { ErasureResult } from "../../src/operate/erasure.ts";
import { surround } from "../../src/operate/transaction.ts";
import { eraseBodies, type Erased } from "../../src/storage/erasure.ts";
import { FIRST_EVENT } from "../../src/storage/retention-batches.ts";
import { openPool, transaction, type Pool, type Queryable } from "../../src/storage/postgres.ts";
import { routeBatch } from "../../src/storage/route.ts";
import { tablesWith } from "../support/canary.ts";
import { createDatabase } from "../support/database.ts";
import { makeDead, MANDATE, operateOn, readAudit, readOutcomes, register } from "../support/dead.ts";
import { look, stepNow } from "../support/operations.ts";
import { letPass, retentionOn } from "../support/retention.ts";
import { until } from "../support/until.ts";
import { readJobs, storeElsewhere } from "../support/work.ts";

const CANARY = "no account for hanako.yamada at example.jp";
const CUSTOMER = "cus_hanako";
const REFS = [{ kind: "customer", id: CUSTOMER }];
const REQUEST = { ref: CUSTOMER, includeUnfinished: true };
const ERASING = { ...MANDATE, subject: CUSTOMER, includeUnfinished: true };
const ROUTING = {
  ...MANDATE,
  since: new Date(0),
  until: new Date("2200-01-01"),
  after: FIRST_EVENT,
  most: 100,
};

/** Waits until so many others wait for a lock. */
const untilWaiting = (pool: Pool, count = 1) =>
  until(
    async () =>
      (
        await pool.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        )
      ).rowCount === count,
    `${count} to wait for a lock`,
  );

async function idsOf(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>("select id from ukemi.events order by id");
  return rows.map((row) => row.id);
}

/** Erases every event, and commits when the other has begun to wait for it. */
async function eraseBefore<T>(pool: Pool, other: () => Promise<T>): Promise<{ erased: Erased; other: T }> {
  const events = await idsOf(pool);
  let late: Promise<T>;
  const erased = await transaction(pool, async (client) => {
    const done = await eraseBodies(client, events, ERASING);
    late = other();
    await untilWaiting(pool);
    return done;
  });
  return { erased, other: await late! };
}

/** Lets a job that was put to work die with words that name somebody. */
const dieAgain = (pool: Pool) =>
  pool.query(
    `update ukemi.jobs set state = 'dead', death = 'terminal', error_class = 'E', error_message = $1, attempt = 1,
       finished_at = ukemi.now()
     where state = 'ready'`,
    [CANARY],
  );

test("blanks what operations wrote down of those that died again, and nothing else of theirs", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  const hers = (await makeDead({ url, pool }, ["evt_hers"], { refs: REFS })).get("evt_hers")!;
  const other = (await makeDead({ url, pool }, ["evt_other"])).get("evt_other")!;
  const { operations, bodies } = operateOn(pool);
  const made = await operations.create({ kind: "replay", name: "n", ids: [hers, other] }, MANDATE);
  await stepNow(pool);
  await dieAgain(pool);
  await look(pool);
  expect((await operations.show(made.id)).state).toBe("done");
  const messages = async () => (await operations.items(made.id)).items.map((item) => item.message);
  expect(await messages()).toEqual([CANARY, CANARY]);
  await bodies.erase(REQUEST, MANDATE);
  expect(await messages()).toEqual(["erased", CANARY]);
  await bodies.erase({ event: "evt_other", includeUnfinished: true }, MANDATE);
  expect(await tablesWith(pool, CANARY)).toEqual([]);
});

test("what operations wrote down goes with the job: no erasure would find it afterwards", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  const id = (await makeDead({ url, pool }, ["evt_1"])).get("evt_1")!;
  const { operations, dead } = operateOn(pool);
  const made = await operations.create({ kind: "replay", name: "n", ids: [id] }, MANDATE);
  await stepNow(pool);
  await dieAgain(pool);
  await look(pool);
  await dead.drop({ ids: [id] }, MANDATE);
  // one that stopped by itself stays, however long
  await pool.query(
    "update ukemi.operations set state = 'stopped', stopped_at = finished_at, stop_reason = 'x', finished_at = null",
  );
  await letPass(pool, 200);
  expect(await tablesWith(pool, CANARY)).toContain("operation_items");
  expect(await retentionOn(pool).prune(MANDATE)).toMatchObject({ jobs: 1 });
  expect((await operations.items(made.id)).items).toMatchObject([
    { state: "dead", error_class: "E", message: null },
  ]);
  expect(await tablesWith(pool, CANARY)).toEqual([]);
});

test("no operation copies the words while they are being erased", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await makeDead({ url, pool }, ["evt_hers"], { refs: REFS });
  const { operations } = operateOn(pool);
  const made = await operations.create({ kind: "replay", name: "n", all: true }, MANDATE);
  await stepNow(pool);
  await dieAgain(pool);
  const events = await idsOf(pool);
  await transaction(pool, async (client) => {
    await eraseBodies(client, events, ERASING);
    // all is blanked, and others do not see it yet
    await look(pool);
  });
  await look(pool);
  expect((await operations.items(made.id)).items).toMatchObject([{ state: "dead", message: "erased" }]);
  expect(await tablesWith(pool, CANARY)).toEqual([]);
});

test("erases again what was written since, and says nothing where nothing was", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await makeDead({ url, pool }, ["evt_1", "evt_2"], { refs: REFS });
  const { bodies } = operateOn(pool);
  expect(await bodies.erase(REQUEST, MANDATE)).toMatchObject({ events: 2, bodies: 2 });
  // as a worker that was thought dead, or an older Ukemi
  await pool.query("update ukemi.jobs set error_message = $1 where id = (select min(id) from ukemi.jobs)", [
    CANARY,
  ]);
  await pool.query(
    `insert into ukemi.attempts (job, number, outcome, error_class, error_stack)
     select min(id), 5, 'dead', 'E', $1 from ukemi.jobs`,
    [CANARY],
  );
  expect(await tablesWith(pool, CANARY)).toEqual(["attempts", "jobs"]);
  const nothing = { events: 0, bodies: 0, jobs_cancelled: 0, left_running: 0, left_unfinished: 0 };
  // its dead letters need no body any more: it is not refused
  expect(await bodies.erase({ ref: CUSTOMER }, MANDATE)).toMatchObject(nothing);
  expect(await tablesWith(pool, CANARY)).toEqual([]);
  const audited = (await readAudit(pool)).map((row) => row.details);
  expect(audited).toEqual([
    { reason: MANDATE.reason, events: 2, bodies: 2 },
    { reason: MANDATE.reason, events: 0, bodies: 0, again: 1 },
  ]);
  expect(await bodies.erase({ ref: CUSTOMER }, MANDATE)).toMatchObject(nothing);
  expect(await readAudit(pool)).toHaveLength(2);
});

test("tells of a job of an erased event that is at work, and cancels one that waits", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await storeElsewhere(url, ["evt_1", "evt_2"], { refs: REFS });
  await pool.query("insert into ukemi.erasures (event) select id from ukemi.events");
  await pool.query(
    `update ukemi.jobs set state = 'running', started_at = ukemi.now(), lease_until = ukemi.now() + interval '1 h',
       lease_token = gen_random_uuid(), worker = gen_random_uuid()
     where id = (select min(id) from ukemi.jobs)`,
  );
  const { bodies } = operateOn(pool);
  expect(await bodies.previewErase(REQUEST)).toMatchObject({
    events: 0,
    bodies: 2,
    unfinished: 2,
    running: 1,
  });
  await expect(bodies.erase({ ref: CUSTOMER }, MANDATE)).rejects.toMatchObject({ code: "body_needed" });
  expect(await bodies.erase(REQUEST, MANDATE)).toMatchObject({
    events: 0,
    bodies: 1,
    jobs_cancelled: 1,
    left_running: 1,
  });
});

test("a replay that waited for an erasure leaves the dead letter dead", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  const id = (await makeDead({ url, pool }, ["evt_1"])).get("evt_1")!;
  const { other } = await eraseBefore(pool, () => operateOn(pool).dead.replay({ ids: [id] }, MANDATE));
  expect(other).toMatchObject({ changed: 0, skips: [{ id, reason: "erased" }] });
  expect((await readJobs(pool))[0]!.state).toBe("dead");
  expect(await readOutcomes(pool)).toEqual({ evt_1: "failed" });
});

test.each([true, false])(
  "a redelivery that waited for an erasure brings nothing back (words: %s)",
  async (words) => {
    const { url, pool } = await createDatabase();
    await register(pool);
    await makeDead({ url, pool }, ["evt_1"]);
    // without words the erasure locks the job, and changes nothing of it
    if (!words) await pool.query("update ukemi.jobs set error_message = null");
    await eraseBefore(pool, () => storeElsewhere(url, ["evt_1"]));
    expect(await readJobs(pool)).toMatchObject([{ state: "dead" }]);
    expect(await readOutcomes(pool)).toEqual({ evt_1: "failed" });
    expect((await readAudit(pool)).map((row) => row.action)).toEqual(["bodies.erased"]);
  },
);

test("a redelivery that waited for another redelivery brings the job back once", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await makeDead({ url, pool }, ["evt_1", "evt_2"]);
  let both: Promise<unknown>;
  await transaction(pool, async (client) => {
    await client.query("select from ukemi.jobs for update");
    both = Promise.all([storeElsewhere(url, ["evt_1", "evt_2"]), storeElsewhere(url, ["evt_2", "evt_1"])]);
    await untilWaiting(pool, 2);
  });
  await both!;
  expect(await readJobs(pool)).toMatchObject([{ state: "ready" }, { state: "ready" }]);
  expect((await readAudit(pool)).filter((row) => row.action === "job.revived")).toHaveLength(2);
});

test("routing that waited for an erasure makes no job", async () => {
  const { url, pool } = await createDatabase();
  await storeElsewhere(url, ["evt_1"]);
  await register(pool);
  const { erased, other } = await eraseBefore(pool, () =>
    operateOn(pool).events.routeBatch({ since: new Date(0) }, MANDATE),
  );
  expect(erased).toMatchObject({ events: 1, bodies: 1 });
  expect(other).toMatchObject({ events: 0, jobs: 0 });
  expect(await readJobs(pool)).toEqual([]);
});

test("an erasure that waited for routing sees the jobs it made", async () => {
  const { url, pool } = await createDatabase();
  await storeElsewhere(url, ["evt_1"], { refs: REFS });
  await register(pool);
  const { bodies } = operateOn(pool);
  let erasing: Promise<ErasureResult>;
  await transaction(pool, async (client) => {
    await routeBatch(client, ROUTING);
    erasing = bodies.erase({ ref: CUSTOMER }, MANDATE);
    await untilWaiting(pool);
  });
  expect(await erasing!).toMatchObject({ events: 0, bodies: 0, left_unfinished: 1 });
  expect(await readJobs(pool)).toMatchObject([{ state: "ready" }]);
  expect((await bodies.show("evt_1"))!.state).toBe("kept");
});

test("leaves a job that stopped running only while it looked: it may be claimed at any time", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await storeElsewhere(url, ["evt_1"]);
  await pool.query(
    `update ukemi.jobs set state = 'running', started_at = ukemi.now(), lease_until = ukemi.now() + interval '1 h',
       lease_token = gen_random_uuid(), worker = gen_random_uuid()`,
  );
  const events = await idsOf(pool);
  await transaction(pool, async (client) => {
    const query = async (text: string, values?: unknown[]) => {
      if (text.includes("as siblings")) {
        // what is not running is locked; now the handler fails, and the job is to be tried again
        await pool.query(
          `update ukemi.jobs set state = 'ready', started_at = null, lease_until = null, lease_token = null, worker = null,
             attempt = 1, error_message = $1`,
          [CANARY],
        );
      }
      return client.query(text, values);
    };
    const erased = await eraseBodies({ query } as Queryable, events, ERASING);
    expect(erased).toMatchObject({ events: 0, bodies: 0, cancelled: 0, leftRunning: 1 });
  });
  expect((await operateOn(pool).bodies.show("evt_1"))!.state).toBe("kept");
});

test("within another transaction it needs no second connection, and goes back with it", async () => {
  const { url, pool } = await createDatabase();
  await storeElsewhere(url, ["evt_1"], { refs: REFS });
  const single = openPool(url, { max: 1, name: "test single" });
  onTestFinished(() => single.end());
  const { bodies } = operateOn(single);
  const undone = surround(single, async () => {
    expect(await bodies.erase(REQUEST, MANDATE)).toMatchObject({ events: 1, bodies: 1 });
    throw new Error("not today");
  });
  await expect(undone).rejects.toThrow("not today");
  expect((await operateOn(pool).bodies.show("evt_1"))!.state).toBe("kept");
});
