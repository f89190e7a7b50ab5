// The one statement that stores a batch: duplicates, jobs, refs, and what an unknown commit turns into.
import { expect, test, vi } from "vitest";
import { storeEvents, type NewEvent } from "../../src/storage/events.ts";
import { registerSubscription } from "../../src/storage/subscriptions.ts";
import { countBlocks } from "../support/buffers.ts";
import { createDatabase } from "../support/database.ts";
import { newEvent, storeDirectly, watchDurability, withConnection } from "../support/store.ts";

test("stores the first of two deliveries in one batch and calls the other a duplicate of it", async () => {
  const { url } = await createDatabase();
  const { events } = await storeDirectly(url, ["evt_1", "evt_2", "evt_1"]);
  expect(events.map((event) => event.duplicate)).toEqual([false, false, true]);
  expect(events[2]!.id).toBe(events[0]!.id);
});

test("gives the id of the event stored earlier to a duplicate", async () => {
  const { url } = await createDatabase();
  const first = await storeDirectly(url, ["evt_1"]);
  const second = await storeDirectly(url, ["evt_0", "evt_1"]);
  expect(second.events).toEqual([
    { id: expect.any(String), duplicate: false },
    { id: first.events[0]!.id, duplicate: true },
  ]);
});

test("gives a duplicate the id of the event that another session stores at the same moment", async () => {
  const { url, pool } = await createDatabase();
  const mine = [newEvent("evt_0"), newEvent("evt_1"), newEvent("evt_2")];
  const patient = {
    worker: crypto.randomUUID(),
    token: crypto.randomUUID(),
    leaseMs: 1000,
    queues: [],
    handlers: [],
    takers: (events: readonly NewEvent[]) => events.map(() => []),
    lockTimeoutMs: 30_000,
  };
  await withConnection(url, (other) =>
    withConnection(url, async (connection) => {
      const first = await storeEvents(other, [newEvent("evt_2")]);
      await other.query("begin");
      const held = await storeEvents(other, [newEvent("evt_1")]);
      const storing = storeEvents(connection, mine, patient);
      // only then is its snapshot older than the other's commit
      await vi.waitUntil(async () => {
        const waiting = await pool.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        );
        return waiting.rowCount === 1;
      }, 30_000);
      await other.query("commit");
      expect((await storing).events).toEqual([
        { id: mine[0]!.id, duplicate: false },
        { id: held.events[0]!.id, duplicate: true },
        { id: first.events[0]!.id, duplicate: true },
      ]);
    }),
  );
});

test("acknowledges nothing that is neither stored now nor found", async () => {
  const { url, pool } = await createDatabase();
  // as when retention removes the earlier event between the conflict and the search
  await pool.query(`
    create function lose() returns trigger language plpgsql as $$ begin return null; end $$;
    create trigger lose before insert on ukemi.events for each row when (new.event_id = 'evt_lost') execute function lose()`);
  await expect(storeDirectly(url, ["evt_lost"])).rejects.toThrow("has gone");
  await expect(storeDirectly(url, ["evt_kept", "evt_lost"])).rejects.toThrow("has gone");
});

test("does not call an event a duplicate of itself when an unknown commit is tried again", async () => {
  const { url, pool } = await createDatabase();
  const event = newEvent("evt_1");
  await withConnection(url, (connection) => storeEvents(connection, [event]));
  const again = await withConnection(url, (connection) => storeEvents(connection, [event]));
  expect(again.events).toEqual([{ id: event.id, duplicate: false }]);
  const { rows } = await pool.query("select count(*)::int as events from ukemi.events");
  expect(rows).toEqual([{ events: 1 }]);
});

test("keeps apart the same id from another source, account or mode", async () => {
  const { url } = await createDatabase();
  const events = [
    newEvent("evt_1"),
    newEvent("evt_1", { source: "other" }),
    newEvent("evt_1", { account: "acct_1" }),
    newEvent("evt_1", { livemode: false }),
  ];
  const stored = await withConnection(url, (connection) => storeEvents(connection, events));
  expect(stored.events.every((event) => !event.duplicate)).toBe(true);
});

test("makes a job for every handler whose pattern fits, in the same commit", async () => {
  const { url, pool } = await createDatabase();
  const claims = [
    { name: "exact", pattern: "payment_intent.succeeded" },
    { name: "family", pattern: "payment_intent.*" },
    { name: "all", pattern: "*" },
    { name: "middle", pattern: "payment_*.succeeded" },
    { name: "other type", pattern: "charge.*" },
    { name: "underscore is no wildcard", pattern: "payment?intent.succeeded" },
    { name: "percent is no wildcard", pattern: "%" },
  ];
  for (const claim of claims) await registerSubscription(pool, { ...claim, source: "stripe" });
  await registerSubscription(pool, { name: "other source", pattern: "*", source: "github" });
  await storeDirectly(url, ["evt_1", "evt_2"]);
  const { rows } = await pool.query(
    `select e.event_id, array_agg(j.subscription order by j.subscription) as handlers, min(j.state) as state
     from ukemi.jobs j join ukemi.events e on e.id = j.event group by e.event_id order by 1`,
  );
  const handlers = ["all", "exact", "family", "middle"];
  expect(rows).toEqual([
    { event_id: "evt_1", handlers, state: "ready" },
    { event_id: "evt_2", handlers, state: "ready" },
  ]);
  const outcomes = await pool.query("select count(*)::int as outcomes from ukemi.event_outcomes");
  expect(outcomes.rows).toEqual([{ outcomes: 0 }]);
});

test("makes no second job for a duplicate, and none for a skipped event", async () => {
  const { url, pool } = await createDatabase();
  await registerSubscription(pool, { name: "all", pattern: "*", source: "stripe" });
  await storeDirectly(url, ["evt_1"]);
  await storeDirectly(url, ["evt_1"]);
  await withConnection(url, (connection) =>
    storeEvents(connection, [newEvent("evt_skip", { skip: "test mode" })]),
  );
  const jobs = await pool.query("select count(*)::int as jobs from ukemi.jobs");
  expect(jobs.rows).toEqual([{ jobs: 1 }]);
  const outcomes = await pool.query("select status, error_message from ukemi.event_outcomes");
  expect(outcomes.rows).toEqual([{ status: "skipped", error_message: "test mode" }]);
});

test.each([
  ["commits durably although", "off", "on"],
  ["commits durably although", "local", "on"],
  ["leaves a stronger setting alone:", "remote_apply", "remote_apply"],
])("%s the database says synchronous_commit = %s", async (_, given, used) => {
  const { url, pool, name } = await createDatabase();
  await pool.query(`alter database ${name} set synchronous_commit = ${given}`);
  const seen = await watchDurability(pool);
  await storeDirectly(url, ["evt_1"]);
  expect(await seen()).toEqual([{ setting: used, commits: 1 }]);
});

test("stores bytes, text of any script and times exactly", async () => {
  const { url, pool } = await createDatabase();
  const body = Buffer.from(Array.from({ length: 1024 }, (_, index) => index % 256));
  const event = newEvent("évt_日本語_🧧", {
    body,
    tenant: "主催者",
    type: "t.ü",
    occurredAt: new Date("1999-12-31T23:59:59.999Z"),
    headers: JSON.stringify({ "x-note": 'quote " and \\ and {braces}, NULL' }),
    refs: [{ kind: "予約", id: 'r_"1",{}' }],
  });
  await withConnection(url, (connection) => storeEvents(connection, [event]));
  const { rows } = await pool.query(
    `select e.event_id, e.tenant, e.type, e.occurred_at, b.body, b.headers, r.kind, r.ref
     from ukemi.events e join ukemi.event_bodies b on b.event = e.id cross join ukemi.refs_of(e.id) as r`,
  );
  expect(rows).toEqual([
    {
      event_id: event.eventId,
      tenant: "主催者",
      type: "t.ü",
      occurred_at: event.occurredAt,
      body,
      headers: event.headers,
      kind: "予約",
      ref: 'r_"1",{}',
    },
  ]);
});

test("what a commit costs does not grow with the jobs that wait in a queue", async () => {
  const { url, pool } = await createDatabase();
  await registerSubscription(pool, { name: "all", pattern: "*", source: "stripe" });
  const offer = {
    worker: crypto.randomUUID(),
    token: crypto.randomUUID(),
    leaseMs: 1000,
    queues: ["default"],
    handlers: ["all"],
    takers: (events: readonly NewEvent[]) => events.map(() => ["all"]),
  };
  const { client, count } = await countBlocks(url);
  let stored = 0;
  const storeOne = async () => {
    const event = newEvent(`evt_${(stored += 1)}`);
    return storeEvents({ query: client.query.bind(client), pooled: false }, [event], offer);
  };
  // planned when nothing waits, as after a quiet night
  await pool.query("vacuum analyze ukemi.jobs");
  for (let round = 0; round < 10; round += 1) await storeOne();
  const wait = async (jobs: number) => {
    await storeDirectly(
      url,
      Array.from({ length: jobs }, (_, index) => `evt_${jobs}_${index}`),
    );
    await storeOne();
    return count(storeOne);
  };
  const few = await wait(10);
  const many = await wait(5000);
  expect(many).toBeLessThan(few + 20);
  const { rows } = await pool.query(
    "select count(*)::int as running from ukemi.jobs where state = 'running'",
  );
  expect(rows).toEqual([{ running: 10 }]); // and nothing has overtaken what waits
});
