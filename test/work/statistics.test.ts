// The counts by hour equal a count from scratch, whatever was done in whatever order, by whomever.
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { countEvents } from "../../src/operate/statistics-round.ts";
import { claimJobs } from "../../src/storage/claim.ts";
import { storeEvents, type NewEvent } from "../../src/storage/events.ts";
import { uuidv7 } from "../../src/storage/ids.ts";
import { openPool, transaction, type Pool, type Queryable } from "../../src/storage/postgres.ts";
import { settleDone, settleManyDone } from "../../src/storage/settle.ts";
import { settleFailed } from "../../src/storage/settle-failed.ts";
import { countStaleHour, findStaleHours } from "../../src/storage/statistics-count.ts";
import { countBlocks } from "../support/buffers.ts";
import { createDatabase } from "../support/database.ts";
import { MANDATE, operateOn, readOutcomes, register } from "../support/dead.ts";
import { seededRandom } from "../support/seed.ts";
import { newEvent } from "../support/store.ts";
import { moveClock } from "../support/worked.ts";

const RUNS = Number(process.env.UKEMI_TEST_RUNS ?? 12);
const TYPES = ["one", "both", "nobody's", "later"] as const;
const TENANTS = [null, "acme", "globex"] as const;
const LINES = ["one", "both a", "both b", "later"];
const TRY = { durationMs: 1, worker: uuidv7(0), traceId: null };
const ERROR = { class: "Error", message: "broken", stack: null };

/** Counts anew, whoever counted last and when. */
const count = (pool: Pool) => countEvents(pool, undefined, 0);

const store = (client: Queryable, events: readonly NewEvent[]) =>
  storeEvents({ query: client.query.bind(client) as Queryable["query"], pooled: true }, events);

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
    await store(pool, [event(type, { skip, tenant: TENANTS[number % 3]! })]);
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
      await settleFailed(pool, job, { next: "retry", delayMs: 0, error: ERROR }, TRY);
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
  async countTwice(pool: Pool) {
    await Promise.all([count(pool), count(pool)]);
  },
} as const;

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
  const names = Object.keys(ACTS) as (keyof typeof ACTS)[];
  const statuses = new Set<string>();
  let acts = 0;
  let events = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...names), fc.nat({ max: 1000 })), { minLength: 10, maxLength: 60 }),
      async (steps) => {
        const { pool } = await createDatabase();
        await registerAll(pool);
        for (const [name, number] of steps) await ACTS[name](pool, number);
        acts += steps.length;
        await count(pool);
        events += await compare(pool);
        for (const status of Object.values(await readOutcomes(pool))) statuses.add(status);
        const { counted_until, hours_to_count } = await operateOn(pool).statistics.types({
          since: new Date(Date.now() - 1000),
          until: new Date(),
        });
        expect(counted_until).not.toBeNull();
        expect(hours_to_count).toBe(0);
      },
    ),
    { seed, numRuns: RUNS },
  );
  console.log(`${acts} acts, ${events} events: ${[...statuses].toSorted().join(", ")}`);
}, 180_000);
