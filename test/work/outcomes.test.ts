// What became of an event: read from its jobs where all of them simply succeeded, and written down before those go.
import { expect, test } from "vitest";
import { listEvents } from "../../src/storage/event-list.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { countBlocks } from "../support/buffers.ts";
import { createDatabase } from "../support/database.ts";
import { MANDATE, register } from "../support/dead.ts";
import { countRows, letPass, retentionOn } from "../support/retention.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";

const TYPE = "payment_intent.succeeded";

/** What the API's list and the view for people's SQL say; they must agree. */
async function statuses(pool: Pool): Promise<Record<string, string>> {
  const listed = await listEvents(pool, { limit: 100 });
  const { rows } = await pool.query<{ event_id: string; status: string; processed_at: Date | null }>(
    "select event_id, status, processed_at from ukemi.webhook_events order by id desc",
  );
  const said = ({ event_id, status, processed_at }: (typeof rows)[number]) =>
    `${event_id} ${status} ${processed_at?.toISOString() ?? "never"}`;
  expect(rows.map(said)).toEqual(listed.map(said));
  return Object.fromEntries(listed.map(({ event_id, status }) => [event_id, status]));
}

test("of a plain success nothing is written but the job, and everybody reads it as one", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  await pool.query("create table seen (id text primary key)");
  ukemi.on("stripe", TYPE, async ({ event, tx }) => {
    if (event.id.startsWith("evt_tx")) tx.send("insert into seen values ($1)", [event.id]);
    if (event.id === "evt_linked") event.link({ billing: "b1" });
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_none", "evt_tx", "evt_linked"]);
  await untilDrained(pool);
  expect(await statuses(pool)).toEqual({ evt_none: "success", evt_tx: "success", evt_linked: "success" });
  expect(await countRows(pool, "event_outcomes")).toBe(1);
  const succeeded = await listEvents(pool, { limit: 100, status: "success" });
  expect(succeeded.map(({ event_id }) => event_id).toSorted()).toEqual(["evt_linked", "evt_none", "evt_tx"]);
  for (const status of ["pending", "failed", "skipped", "unrouted"] as const) {
    expect(await listEvents(pool, { limit: 100, status })).toEqual([]);
  }
  const { rows } = await pool.query(
    "select bool_and(v.processed_at = j.finished_at) as same from ukemi.webhook_events v join ukemi.jobs j on j.event = v.id",
  );
  expect(rows).toEqual([{ same: true }]);
});

test("the outcome outlives the jobs, whoever removes them", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  ukemi.on("stripe", TYPE, () => {});
  await ukemi.work();
  await storeElsewhere(url, ["evt_pruned", "evt_by_hand"]);
  await untilDrained(pool);
  const before = await listEvents(pool, { limit: 100 });
  await pool.query(
    "delete from ukemi.jobs where event = (select id from ukemi.events where event_id = 'evt_by_hand')",
  );
  await letPass(pool, 31);
  expect(await retentionOn(pool).prune(MANDATE)).toMatchObject({ jobs: 1 });
  expect(await countRows(pool, "jobs")).toBe(0);
  expect(await listEvents(pool, { limit: 100 })).toEqual(before.map((event) => ({ ...event, jobs: [] })));
  expect(await statuses(pool)).toEqual({ evt_pruned: "success", evt_by_hand: "success" });
});

test("an event is a success only when all of its jobs are done", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  for (const name of ["a", "b"]) ukemi.on("stripe", TYPE, () => {}, { name });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await untilDrained(pool);
  await ukemi.stop();
  await pool.query("delete from ukemi.event_outcomes");
  const withOther = async (state: string) => {
    await pool.query("update ukemi.jobs set state = $1 where subscription = 'b'", [state]);
    return (await statuses(pool))["evt_1"];
  };
  const lease = "lease_until = ukemi.now(), lease_token = gen_random_uuid(), worker = gen_random_uuid()";
  expect(await withOther("done")).toBe("success");
  expect(await withOther("cancelled")).toBe("success");
  await pool.query(
    `update ukemi.jobs set state = 'running', finished_at = null, ${lease} where subscription = 'b'`,
  );
  expect((await statuses(pool))["evt_1"]).toBe("pending");
  // what goes while another is unfinished says nothing yet
  await pool.query("delete from ukemi.jobs where subscription = 'a'");
  expect(await countRows(pool, "event_outcomes")).toBe(0);
});

/** Two jobs for each event, none of which is worked on, and a way to say how each ended. */
async function withTwoJobs(eventIds: readonly string[]) {
  const { url, pool } = await createDatabase();
  for (const name of ["a", "b"]) await register(pool, { name });
  await storeElsewhere(url, eventIds);
  const jobsOf = (id: string, name: string) =>
    `subscription like '${name}' and event = (select id from ukemi.events where event_id = '${id}')`;
  return {
    pool,
    end: (id: string, name: string, state: string, minute = 0) =>
      pool.query(
        `update ukemi.jobs
         set state = $1, finished_at = '2030-01-01T00:00:00Z'::timestamptz + $2 * interval '1 minute'
         where ${jobsOf(id, name)}`,
        [state, minute],
      ),
    remove: (id: string, name = "%") => pool.query(`delete from ukemi.jobs where ${jobsOf(id, name)}`),
  };
}

test("an unfinished job that goes together with a done one leaves no success behind", async () => {
  const { pool, end, remove } = await withTwoJobs(["evt_half", "evt_whole", "evt_given_up"]);
  await end("evt_half", "a", "done");
  for (const name of ["a", "b"]) await end("evt_whole", name, "done");
  for (const name of ["a", "b"]) await end("evt_given_up", name, "cancelled");
  for (const id of ["evt_half", "evt_whole", "evt_given_up"]) await remove(id);
  expect(await statuses(pool)).toEqual({
    evt_half: "pending",
    evt_whole: "success",
    evt_given_up: "pending",
  });
});

test("what an event came to, and when, is the same before its jobs go, between, and after", async () => {
  const ends = {
    evt_later_first: [["a", "b"], { a: "done", b: "done" }],
    evt_later_last: [["b", "a"], { a: "done", b: "done" }],
    evt_cancelled_first: [["b", "a"], { a: "done", b: "cancelled" }],
    evt_cancelled_last: [["a", "b"], { a: "done", b: "cancelled" }],
  } as const;
  const { pool, end, remove } = await withTwoJobs(Object.keys(ends));
  for (const [id, [, { a, b }]] of Object.entries(ends)) {
    await end(id, "a", a, 1);
    await end(id, "b", b, 2);
  }
  const { rows: before } = await pool.query("select * from ukemi.webhook_events order by id");
  expect(before.map(({ status }: { status: string }) => status)).toEqual(before.map(() => "success"));
  for (const turn of [0, 1]) {
    for (const [id, [order]] of Object.entries(ends)) await remove(id, order[turn]);
    expect((await pool.query("select * from ukemi.webhook_events order by id")).rows).toEqual(before);
  }
  expect(await countRows(pool, "jobs")).toBe(0);
});

test("ids of ours, one event and what is no success are found without reading the history", async () => {
  const { url, pool } = await createDatabase();
  await pool.query(`
    with made as (
      insert into ukemi.events (id, source, event_id, type, received_at, body_sha256, body_bytes)
      select (lpad(to_hex(n), 8, '0') || '-0000-7000-8000-000000000000')::uuid, 'stripe', 'evt_' || n, 't',
        ukemi.now() - n * interval '1 second', '', 0
      from generate_series(1, 20000) as n
      returning id, event_id, received_at
    ),
    bodies as (
      insert into ukemi.event_bodies (event, received_at, body, headers) select id, received_at, '{}', '{}' from made
    ),
    outcomes as (
      insert into ukemi.event_outcomes (event, status, processed_at, billing_id, office_id)
      select id, case when event_id = 'evt_7' then 'failed' else 'success' end, received_at, 'b' || event_id, 'o' || event_id
      from made
      where event_id like '%7'
    )
    insert into ukemi.jobs (
      queue, kind, subscription, event, state, death, attempt, max_attempts, policy, run_at, created_at, finished_at
    )
    select 'default', 'handler', 'h', id, case when event_id = 'evt_7' then 'dead' else 'done' end,
      case when event_id = 'evt_7' then 'exhausted' end, 1, 4, 'quick', received_at, received_at, received_at
    from made`);
  await pool.query("vacuum (analyze) ukemi.events, ukemi.event_bodies, ukemi.event_outcomes, ukemi.jobs");
  const counter = await countBlocks(url);
  const blocksOf = (sql: string) =>
    counter.count(async (client) => {
      expect((await client.query(sql)).rows).toHaveLength(1);
    });
  const view = "select * from ukemi.webhook_events where";
  const blocks = {
    billing: await blocksOf(`${view} billing_id = 'bevt_777'`),
    office: await blocksOf(`${view} office_id = 'oevt_777'`),
    linked: await blocksOf(`${view} event_id = 'evt_777' and source = 'stripe'`),
    plain: await blocksOf(`${view} event_id = 'evt_778' and source = 'stripe' and status = 'success'`),
    newest: await blocksOf("select * from ukemi.webhook_events order by id desc limit 1"),
    dead: await blocksOf("select * from ukemi.failed_webhook_events"),
    failed: await counter.count(async (client) => {
      expect(await listEvents(client, { limit: 10, status: "failed" })).toHaveLength(1);
    }),
  };
  console.log(`blocks of 20,000 events: ${JSON.stringify(blocks)}`);
  for (const [of, count] of Object.entries(blocks)) expect(count, of).toBeLessThan(100);
}, 120_000);
