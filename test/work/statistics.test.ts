// The counts by hour equal a count from scratch, whatever was done in whatever order, by whomever.
import fc from "fast-check";
import { expect, test } from "vitest";
import { countEvents } from "../../src/operate/statistics-round.ts";
import { claimJobs } from "../../src/storage/claim.ts";
import { storeEvents, type NewEvent } from "../../src/storage/events.ts";
import { uuidv7 } from "../../src/storage/ids.ts";
import { transaction, type Pool, type Queryable } from "../../src/storage/postgres.ts";
import { settleDone, settleManyDone } from "../../src/storage/settle.ts";
import { settleFailed } from "../../src/storage/settle-failed.ts";
import { countStaleHour, findStaleHours } from "../../src/storage/statistics-count.ts";
import { countBlocks } from "../support/buffers.ts";
import { createDatabase } from "../support/database.ts";
import { MANDATE, operateOn, readOutcomes, register } from "../support/dead.ts";
import { seededRandom } from "../support/seed.ts";
import { newEvent } from "../support/store.ts";
import { countAs16, countHourAs16, findAs16 } from "../support/version-16.ts";
import { moveClock } from "../support/worked.ts";

const RUNS = Number(process.env.UKEMI_TEST_RUNS ?? 12);
const TYPES = ["one", "both", "nobody's", "later"] as const;
const TENANTS = [null, "acme", "globex"] as const;
const LINES = ["one", "both a", "both b", "later"];
const TRY = { durationMs: 1, worker: uuidv7(0), traceId: null };
const ERROR = { class: "Error", message: "broken", stack: null };

/** Counts anew, whoever counted last and when. */
const count = (pool: Pool) => countEvents(pool, { recentMs: 0 });

const store = (client: Queryable, events: readonly NewEvent[]) =>
  storeEvents({ query: client.query.bind(client), pooled: true }, events);

/** The table as it is, and as it should be, counted one by one from the view that people read. */
async function compare(pool: Pool): Promise<number> {
  const { rows: events } = await pool.query<{
    source: string;
    type: string;
    hour: string;
    tenant: string;
    status: string;
  }>(
    `select w.source, w.event_type as type, coalesce(e.tenant, '') as tenant, w.status,
       to_char(w.created_at at time zone 'UTC', 'YYYY-MM-DD HH24') as hour
     from ukemi.webhook_events w
     join ukemi.events e on e.id = w.id`,
  );
  const wanted: Record<string, Record<string, number>> = {};
  for (const { source, type, hour, tenant, status } of events) {
    const key = [hour, source, type, tenant].join("|");
    wanted[key] ??= { received: 0, pending: 0, success: 0, failed: 0, skipped: 0, unrouted: 0 };
    wanted[key].received! += 1;
    wanted[key][status]! += 1;
  }
  const { rows } = await pool.query<{ key: string } & Record<string, number>>(
    `select concat_ws('|', to_char(hour at time zone 'UTC', 'YYYY-MM-DD HH24'), source, type, tenant) as key,
       received, received - success - failed - skipped - unrouted as pending, success, failed, skipped, unrouted
     from ukemi.event_hours`,
  );
  expect(Object.fromEntries(rows.map(({ key, ...counts }) => [key, counts]))).toEqual(wanted);
  return events.length;
}

/** Registers a handler for one type, two for another, and none for the rest. */
async function registerAll(pool: Pool): Promise<void> {
  await register(pool, { name: "one", pattern: "one" });
  await register(pool, { name: "both a", pattern: "both" });
  await register(pool, { name: "both b", pattern: "both" });
}

let made = 0;
function event(type: string, changes: Partial<NewEvent> = {}): NewEvent {
  made += 1;
  return newEvent(`evt_${made}`, { type, ...changes });
}

/** What senders, workers, operators and time do; the number chooses among what there is. */
const ACTS = {
  async receive(pool: Pool, number: number) {
    const type = TYPES[number % TYPES.length]!;
    const skip = number % 5 === 0 ? "livemode" : null;
    const events = Array.from({ length: 1 + (number % 4) }, () =>
      event(type, { skip, tenant: TENANTS[number % 3]! }),
    );
    await store(pool, events);
  },
  async done(pool: Pool, number: number) {
    for (const job of await claim(pool, 1 + (number % 2))) {
      if (job.siblings === 1 && number % 3 === 0)
        await settleManyDone(pool, TRY.worker, [{ job, attempt: TRY }]);
      else
        await transaction(pool, (client) =>
          settleDone((text, values) => client.query(text, values), job, {
            trail: { audits: [], links: new Map(number % 2 === 0 ? [["billing", "b_1"]] : []) },
            attempt: TRY,
            within: null,
          }),
        );
    }
  },
  async retry(pool: Pool) {
    for (const job of await claim(pool, 1)) {
      const isLast = job.attempt + 1 >= job.maxAttempts;
      const death = { next: "die", death: "exhausted", error: ERROR } as const;
      await settleFailed(pool, job, isLast ? death : { next: "retry", delayMs: 0, error: ERROR }, TRY);
    }
    await pool.query("update ukemi.jobs set state = 'ready' where state = 'scheduled'");
  },
  async die(pool: Pool, number: number) {
    for (const job of await claim(pool, 1 + (number % 3))) {
      await settleFailed(pool, job, { next: "die", death: "exhausted", error: ERROR }, TRY);
    }
  },
  async crash(pool: Pool) {
    // as the rescue of a job that killed its workers leaves it
    await claim(pool, 1);
    await pool.query(
      "update ukemi.jobs set recoveries = 9, lease_until = '-infinity' where state = 'running'",
    );
    const { rescueJobs } = await import("../../src/storage/rescue.ts");
    await rescueJobs(pool);
  },
  async replay(pool: Pool, number: number) {
    const ids = await dead(pool, number);
    if (ids.length > 0) await operateOn(pool).dead.replay({ ids }, MANDATE);
  },
  async drop(pool: Pool, number: number) {
    const ids = await dead(pool, number);
    if (ids.length > 0) await operateOn(pool).dead.drop({ ids }, MANDATE);
  },
  async resend(pool: Pool, number: number) {
    const { rows } = await pool.query<{ event_id: string; type: string; tenant: string | null }>(
      "select event_id, type, tenant from ukemi.events order by id offset $1 % (select greatest(count(*), 1) from ukemi.events) limit 1",
      [number],
    );
    for (const { event_id, type, tenant } of rows) await store(pool, [newEvent(event_id, { type, tenant })]);
  },
  async route(pool: Pool) {
    await register(pool, { name: "later", pattern: "later" });
    await operateOn(pool).events.route({ since: new Date(0), until: new Date(Date.now() + 1e11) }, MANDATE);
    await pool.query("update ukemi.subscriptions set active = false where name = 'later'");
  },
  async pass(pool: Pool, number: number) {
    await pool.query("update ukemi.clock set shift = shift + $1 * interval '7 minutes'", [number % 30]);
  },
  count,
  /** Killed after the search, or after the first of the hours. */
  async countHalf(pool: Pool, number: number) {
    await transaction(pool, (client) => findStaleHours(client, 0));
    if (number % 2 === 0) await transaction(pool, countStaleHour);
  },
  /** Killed inside one of its transactions. */
  async countKilled(pool: Pool, number: number) {
    const killed = transaction(pool, async (client) => {
      await (number % 2 === 0 ? findStaleHours(client, 0) : countStaleHour(client));
      await client.query("select pg_terminate_backend(pg_backend_pid())");
    });
    await expect(killed).rejects.toThrow();
  },
  async countTwice(pool: Pool) {
    await Promise.all([count(pool), count(pool)]);
  },
  /** A process of the version before, all of its round or a part of it. */
  async countBefore(pool: Pool, number: number) {
    await [countAs16, findAs16, countHourAs16][number % 3]!(pool);
  },
} as const;

const OFTEN = ["receive", "receive", "receive", "die", "done", "replay"] as const;

function claim(pool: Pool, most: number) {
  return claimJobs(pool, {
    queue: "default",
    handlers: LINES,
    most,
    alone: false,
    afterTenant: "",
    worker: TRY.worker,
    token: uuidv7(Date.now()),
    leaseMs: 600_000,
  });
}

async function dead(pool: Pool, number: number): Promise<number[]> {
  const { rows } = await pool.query<{ id: string }>(
    "select id from ukemi.jobs where state = 'dead' order by id",
  );
  return rows.map(({ id }) => Number(id)).filter((id) => (id + number) % 2 === 0);
}

test("after any order of receipts, failures, replays, drops, routes and counts, the table equals a count from scratch", async () => {
  const { seed } = seededRandom("counts by hour");
  const { pool } = await createDatabase();
  await registerAll(pool);
  const names = [...(Object.keys(ACTS) as (keyof typeof ACTS)[]), ...OFTEN];
  const statuses = new Set<string>();
  let acts = 0;
  let events = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...names), fc.nat({ max: 1000 })), {
        minLength: 40,
        maxLength: 60,
        size: "max",
      }),
      async (steps) => {
        for (const [name, number] of steps) await ACTS[name](pool, number);
        acts += steps.length;
        await count(pool);
        events = await compare(pool);
        for (const status of Object.values(await readOutcomes(pool))) statuses.add(status);
        const { counted_until, hours_to_count } = await operateOn(pool).statistics.types({
          since: new Date(Date.now() - 1000),
          until: new Date(),
        });
        expect(counted_until).not.toBeNull();
        expect(hours_to_count).toBe(0);
      },
    ),
    // one database for all: what a run before left behind is part of the next
    { seed, numRuns: RUNS, endOnFailure: true },
  );
  console.log(`${acts} acts, ${events} events: ${[...statuses].toSorted().join(", ")}`);
}, 180_000);

test("an event and an outcome that are committed late are counted, also when many counts came before", async () => {
  const { pool } = await createDatabase();
  await registerAll(pool);
  await store(pool, [event("one"), event("one")]);
  await count(pool);
  const [job] = await claim(pool, 1);
  let commit!: () => void;
  const held = new Promise<void>((resolve) => (commit = resolve));
  let ready!: () => void;
  const under = new Promise<void>((resolve) => (ready = resolve));
  const late = transaction(pool, async (client) => {
    await client.query("set local idle_in_transaction_session_timeout = 0");
    await store(client, [event("nobody's")]);
    await settleDone((text, values) => client.query(text, values), job!, {
      trail: { audits: [], links: new Map() },
      attempt: TRY,
      within: null,
    });
    ready();
    await held;
  });
  await under;
  // longer than any margin: only the numbers of transactions tell that one is still under way
  for (const shift of ["10 minutes", "20 minutes", "50 minutes"]) {
    await moveClock(pool, shift);
    await count(pool);
    await compare(pool);
  }
  commit();
  await late;
  await count(pool);
  expect(await compare(pool)).toBe(3);
  expect(Object.values(await readOutcomes(pool)).toSorted()).toEqual(["pending", "success", "unrouted"]);
});

test("what a process of the version before has counted without plain successes is counted again", async () => {
  const { pool } = await createDatabase();
  const pass = (time: string) => pool.query("update ukemi.clock set shift = shift + $1::interval", [time]);
  await pool.query(
    "update ukemi.clock set shift = date_trunc('hour', clock_timestamp()) + interval '5 minutes' - clock_timestamp()",
  );
  await registerAll(pool);
  await store(pool, [event("one"), event("one"), event("one")]);
  await count(pool);
  // the other looks past the old hour, and counts the one that goes on
  await pass("3 hours");
  for (let times = 0; times < 3; times += 1) {
    await pass("10 minutes");
    await store(pool, [event("one")]);
    await countAs16(pool);
    await ACTS.done(pool, 1);
    await countAs16(pool);
  }
  await countEvents(pool); // nobody who knows better was here lately
  await compare(pool);
  const { rows } = await pool.query("select received, success from ukemi.event_hours order by hour");
  expect(rows).toEqual([
    { received: 3, success: 3 },
    { received: 3, success: 3 },
  ]);
  expect((await pool.query("select from ukemi.miscounted_hours")).rowCount).toBe(0);
});

test("receiving and settling note nothing; only what is pending again is noted", async () => {
  const { pool } = await createDatabase();
  await registerAll(pool);
  const noted = async () => (await pool.query("select from ukemi.outcome_changes")).rowCount;
  for (let number = 0; number < 20; number += 1) await ACTS.receive(pool, number);
  for (const number of [0, 1, 2, 3]) await ACTS.done(pool, number);
  for (const act of ["retry", "die", "crash"] as const) await ACTS[act](pool, 2);
  expect(await noted()).toBe(0);
  const { rowCount: dead } = await pool.query("select distinct event from ukemi.jobs where state = 'dead'");
  expect(dead).toBeGreaterThan(0);
  await operateOn(pool).dead.replay({ all: true }, MANDATE);
  expect(await noted()).toBe(dead);
  await count(pool);
  expect(await noted()).toBe(0);
  await compare(pool);
});

test("an older store is counted hour by hour, the newest first, and goes on where it was stopped", async () => {
  const { pool } = await createDatabase();
  await fillHistory(pool, 50, 4);
  expect(await transaction(pool, (client) => findStaleHours(client, 0))).toBe("found");
  for (let hours = 0; hours < 3; hours += 1) expect(await transaction(pool, countStaleHour)).toBe("counted");
  const { statistics } = operateOn(pool);
  const span = { since: new Date(Date.now() - 60 * 3_600_000), until: new Date(Date.now() + 3_600_000) };
  const begun = await statistics.hours(span);
  expect(begun.counted_until).toBeNull();
  expect(begun.hours_to_count).toBeGreaterThan(40);
  const newest = begun.items.map((item) => Date.parse(item.hour));
  expect(Math.min(...newest)).toBeGreaterThan(Date.now() - 4 * 3_600_000);
  // a stop in the middle
  const stop = new AbortController();
  stop.abort();
  await countEvents(pool, { ended: stop.signal, recentMs: 0 });
  expect((await statistics.hours(span)).counted_until).toBeNull();
  // a little at a time
  expect(await countEvents(pool, { mostMs: 0 })).toMatchObject({ left: true });
  await count(pool);
  expect(await compare(pool)).toBe(200);
  const all = await statistics.hours(span);
  expect(all.hours_to_count).toBe(0);
  expect(Date.parse(all.counted_until!)).toBeGreaterThan(Date.now() - 600_000);
});

test("what retention removed stays counted", async () => {
  const { pool } = await createDatabase();
  await fillHistory(pool, 3, 4);
  await count(pool);
  await transaction(pool, async (client) => {
    await client.query("set local ukemi.retention = 'on'");
    await client.query("delete from ukemi.events where received_at < ukemi.now() - interval '90 minutes'");
  });
  await pool.query(
    "insert into ukemi.stale_hours select distinct hour from ukemi.event_hours on conflict do nothing",
  );
  await count(pool);
  const { rows } = await pool.query("select sum(received)::int as received from ukemi.event_hours");
  expect(rows).toEqual([{ received: 12 }]);
});

test("a count costs the same with two hundred hours of history as with two", async () => {
  const blocks: number[] = [];
  let pages = 0;
  for (const hours of [2, 200]) {
    const { url, pool } = await createDatabase();
    // in the middle of an hour: one that turns meanwhile is counted once more
    await pool.query(
      "update ukemi.clock set shift = date_trunc('hour', clock_timestamp()) + interval '35 minutes' - clock_timestamp()",
    );
    await fillHistory(pool, hours, 500);
    await pool.query("vacuum (analyze) ukemi.events, ukemi.event_outcomes");
    await count(pool);
    await count(pool);
    await store(pool, [event("nobody's")]);
    const size = await pool.query<{ pages: number }>(
      "select sum(relpages)::int as pages from pg_class where oid in ('ukemi.events'::regclass, 'ukemi.event_outcomes'::regclass)",
    );
    pages = size.rows[0]!.pages;
    const counter = await countBlocks(url);
    for (const table of ["events", "event_outcomes", "event_hours", "stale_hours"]) {
      await pool.query(`alter table ukemi.${table} set (autovacuum_enabled = off)`);
    }
    blocks.push(
      await counter.count(async () => {
        await countEvents(counter.client as Pool, { recentMs: 0 });
      }),
    );
  }
  console.log(
    `blocks of a count with 2 and with 200 hours of history: ${blocks.join(", ")}, of ${pages} pages`,
  );
  // the trees are a level higher
  expect(pages).toBeGreaterThan(2000);
  expect(blocks[1]! - blocks[0]!).toBeLessThan(20);
}, 120_000);

/**
 * Events in the past, in a store that has never been counted, with what became of them. They lie in no order at all: what
 * is free in old pages is given to new rows.
 */
async function fillHistory(pool: Pool, hours: number, perHour: number): Promise<void> {
  await pool.query(
    `with made as (
       insert into ukemi.events (id, source, event_id, type, received_at, body_sha256, body_bytes)
       select
         (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 19))::uuid,
         'stripe', 'old_' || n, 'nobody''s', at, '', 0
       from generate_series(1, $1::int * $2::int) as n
       cross join lateral (
         select date_trunc('hour', ukemi.now()) - interval '30 minutes' - ($1::int - 1 - (n - 1) / $2::int) * interval '1 hour'
           + (n % $2::int) * interval '1 ms' as at
       ) as t
       order by md5(n::text)
       returning id, received_at
     )
     insert into ukemi.event_outcomes (event, status, processed_at)
     select id, 'unrouted', received_at from made`,
    [hours, perHour],
  );
}

test("a reader that is bound to tenants sees only their counts", async () => {
  const { pool } = await createDatabase();
  await registerAll(pool);
  for (const tenant of [null, "acme", "acme", "globex"]) await store(pool, [event("nobody's", { tenant })]);
  await store(pool, [event("one", { tenant: "acme" }), event("both", { tenant: "globex" })]);
  const job = (await claim(pool, 5)).find(({ handler }) => handler === "one");
  await settleFailed(pool, job!, { next: "die", death: "terminal", error: ERROR }, TRY);
  await count(pool);
  const { statistics } = operateOn(pool);
  const span = { since: new Date(Date.now() - 3_600_000), until: new Date(Date.now() + 3_600_000) };
  const received = async (tenants?: readonly string[]) =>
    Object.fromEntries(
      (await statistics.types({ ...span, tenants })).items.map((item) => [item.type, item.received]),
    );
  expect(await received()).toEqual({ "nobody's": 4, one: 1, both: 1 });
  expect(await received(["acme"])).toEqual({ "nobody's": 2, one: 1 });
  expect(await received(["acme", "globex"])).toEqual({ "nobody's": 3, one: 1, both: 1 });
  expect(await received([""])).toEqual({});
  expect(await received([])).toEqual({});
  const { items } = await statistics.types({ ...span, tenants: ["acme"] });
  expect(items[1]).toMatchObject({ source: "stripe", type: "one", failed: 1, pending: 0, success_share: 0 });
  expect(Date.now() - Date.parse(items[1]!.last_received_at)).toBeLessThan(600_000);
  const hours = await statistics.hours({ ...span, source: "stripe", type: "nobody's", tenants: ["globex"] });
  expect(hours.items).toEqual([
    {
      hour: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:00:00\.000Z$/) as string,
      source: "stripe",
      type: "nobody's",
      received: 1,
      pending: 0,
      success: 0,
      failed: 0,
      skipped: 0,
      unrouted: 1,
    },
  ]);
});

test("refuses spans and cursors that cannot be", async () => {
  const { pool } = await createDatabase();
  const { statistics } = operateOn(pool);
  const now = new Date();
  const before = (days: number) => new Date(now.getTime() - days * 86_400_000);
  const refused = (work: () => Promise<unknown>) =>
    expect((async () => work())()).rejects.toMatchObject({ code: "invalid_parameter" });
  await refused(() => statistics.hours({ since: now, until: now }));
  await refused(() => statistics.hours({ since: before(32), until: now }));
  await refused(() => statistics.hours({ since: before(1), until: now, type: "\u0000" }));
  await refused(() => statistics.types({ since: before(367), until: now }));
  await refused(() => statistics.types({ since: new Date(Number.NaN), until: now }));
  await refused(() => statistics.anomalies({ since: before(1), until: now, limit: 201 }));
  await refused(() => statistics.anomalies({ since: before(1), until: now, cursor: "x" }));
  expect(await statistics.hours({ since: before(31), until: now })).toEqual({
    counted_until: null,
    hours_to_count: 0,
    items: [],
  });
});
