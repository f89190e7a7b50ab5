// Rolling deploys: version N−1 runs on schema N, and work goes on while the schema is migrated under it.
import { expect, test } from "vitest";
import { migrate, readMigrations, type Migration } from "../../src/storage/migrate.ts";
import { settleFailed } from "../../src/storage/settle-failed.ts";
import { countEvents } from "../../src/operate/statistics-round.ts";
import { createDatabase } from "../support/database.ts";
import { HANDLER, MANDATE, operateOn, register } from "../support/dead.ts";
import { until } from "../support/until.ts";
import { claimAs16, settleManyAs16, settleTogetherAs16 } from "../support/version-16.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";

const TYPE = "payment_intent.succeeded";

/** A migration as the next version might bring it. */
async function nextMigration(sql: string, compatibleWith: number): Promise<Migration[]> {
  const known = await readMigrations();
  const version = known.at(-1)!.version + 1;
  return [...known, { version, name: "next", sql, checksum: "next", compatibleWith }];
}

/** What version 1 sends to make an event's job: it knows none of the columns that came with version 2. */
const VERSION_1 = `
with stored as (
  insert into ukemi.events (id, source, event_id, type, received_at, body_sha256, body_bytes)
  values (gen_random_uuid(), 'stripe', $1, '${TYPE}', ukemi.now(), '', 2)
  returning id, received_at
),
bodies as (
  insert into ukemi.event_bodies (event, received_at, body, headers)
  select id, received_at, convert_to('{"id":"' || $1 || '"}', 'UTF8'), '{}' from stored
)
insert into ukemi.jobs (queue, kind, subscription, event, tenant, state, priority, max_attempts, policy, run_at, created_at)
select s.queue, 'handler', s.name, stored.id, null, 'ready', s.priority, s.max_attempts, s.policy, received_at, received_at
from stored, ukemi.subscriptions s`;

test("works on the jobs that a receiver of the version before makes", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  const ran: string[] = [];
  ukemi.on("stripe", TYPE, ({ event }) => ran.push(event.id));
  await ukemi.work();
  await pool.query(VERSION_1, ["evt_old"]);
  await storeElsewhere(url, ["evt_new"]);
  const jobs = await untilDrained(pool);
  expect(jobs.map((job) => job.state)).toEqual(["done", "done"]);
  expect(ran.toSorted()).toEqual(["evt_new", "evt_old"]);
});

test("takes over what lies in a schema of version 1: it is worked on, listed, replayed, counted and pruned", async () => {
  const { url, pool } = await createDatabase({ empty: true });
  const known = await readMigrations();
  await migrate(pool, known.slice(0, 1));
  await pool.query(
    `insert into ukemi.subscriptions (name, source, pattern) values ('stripe/${TYPE}', 'stripe', '${TYPE}')`,
  );
  for (const id of ["evt_ready", "evt_dead", "evt_done"]) await pool.query(VERSION_1, [id]);
  const end = (id: string, state: string) =>
    pool.query(
      `update ukemi.jobs set state = $2, finished_at = ukemi.now(), attempt = 1, error_class = 'TypeError'
       where event = (select id from ukemi.events where event_id = $1)`,
      [id, state],
    );
  await end("evt_dead", "dead");
  await end("evt_done", "done");
  await pool.query(
    "insert into ukemi.audit_log (actor, role, action) values ('a', 'operator', 'old'), ('h', 'handler', 'older')",
  );
  await migrate(pool, known);

  const { ukemi } = makeUkemi(url, { bodyKeys: [`a:${Buffer.alloc(32, 7).toString("base64")}`] });
  const ran: string[] = [];
  ukemi.on("stripe", TYPE, ({ event }) => ran.push(event.id));
  await ukemi.work();
  await storeElsewhere(url, ["evt_new"]);
  await until(() => ran.length === 2, "the old and the new to be worked on");
  const { dead, jobs, audit, statistics, bodies, retention } = ukemi.operate;
  expect((await dead.list()).items).toMatchObject([{ event_id: "evt_dead", death: "exhausted" }]);
  expect((await dead.replay({ all: true }, MANDATE)).changed).toBe(1);
  await untilDrained(pool);
  expect(ran.toSorted()).toEqual(["evt_dead", "evt_new", "evt_ready"]);
  expect((await jobs.list({ state: "done" })).items).toHaveLength(4);
  expect((await audit.list({ role: "people", action: "old" })).items).toHaveLength(1);
  await bodies.seal(MANDATE);
  expect((await bodies.show("evt_ready"))?.body?.toString()).toBe('{"id":"evt_ready"}');
  await countEvents(pool, { recentMs: 0 });
  expect(
    await statistics.types({
      since: new Date(Date.now() - 86_400_000),
      until: new Date(Date.now() + 86_400_000),
    }),
  ).toMatchObject({ items: [{ type: TYPE, received: 4 }] });
  await pool.query("update ukemi.clock set shift = '31 days'");
  expect(await retention.prune(MANDATE)).toMatchObject({ jobs: 4 });
});

test("goes on working while the next version migrates the schema, and starts again on it", async () => {
  const { url, pool } = await createDatabase();
  await pool.query("create table ledger (event text not null)");
  const make = () => {
    const { ukemi } = makeUkemi(url);
    ukemi.on("stripe", TYPE, async ({ tx, event }) => {
      await tx.query("insert into ledger values ($1)", [event.id]);
    });
    return ukemi;
  };
  const before = make();
  await before.work();
  const wave = (name: string) =>
    storeElsewhere(
      url,
      Array.from({ length: 50 }, (_, index) => `evt_${name}_${index}`),
    );
  await wave("one");
  const sql = `alter table ukemi.jobs add column region text;
    alter table ukemi.workers add column region text;
    create index jobs_by_region on ukemi.jobs (region)`;
  const migrating = nextMigration(sql, 2).then((known) => migrate(pool, known));
  await wave("two");
  await migrating;
  await wave("three");
  await untilDrained(pool);
  const after = make();
  await after.work();
  await before.stop();
  await wave("four");
  const jobs = await untilDrained(pool);
  expect(jobs.every((job) => job.state === "done" && job.attempt === 1)).toBe(true);
  const { rows } = await pool.query(
    "select count(*)::int as n, count(distinct event)::int as events from ledger",
  );
  expect(rows).toEqual([{ n: 200, events: 200 }]);
});

test("a replayed job that was claimed before plain successes came is completed after that, and its event is a success", async () => {
  const { pool } = await createDatabase({ empty: true });
  const known = await readMigrations();
  await migrate(
    pool,
    known.filter(({ version }) => version <= 16),
  );
  await register(pool);
  for (const id of ["evt_many", "evt_together"]) await pool.query(VERSION_1, [id]);
  for (const job of await claimAs16(pool, HANDLER)) {
    const error = { class: "Error", message: "broken", stack: null };
    const attempt = { durationMs: 1, worker: "00000000-0000-7000-8000-000000000016", traceId: null };
    await settleFailed(pool, job, { next: "die", death: "exhausted", error }, attempt);
  }
  expect((await operateOn(pool).dead.replay({ all: true }, MANDATE)).changed).toBe(2);
  const [many, together] = await claimAs16(pool, HANDLER);
  await migrate(pool, known);
  await settleManyAs16(pool, [many!]);
  await settleTogetherAs16(pool, [together!], "b1");
  const { rows } = await pool.query(
    `select event_id, status, billing_id, processed_at is not null as processed
     from ukemi.webhook_events
     order by event_id`,
  );
  expect(rows).toEqual([
    { event_id: "evt_many", status: "success", billing_id: null, processed: true },
    { event_id: "evt_together", status: "success", billing_id: "b1", processed: true },
  ]);
});

test("refuses to start on a schema that needs newer code, and says so", async () => {
  const { url, pool } = await createDatabase();
  const next = (await readMigrations()).at(-1)!.version + 1;
  await migrate(pool, await nextMigration("select 1", next));
  const { ukemi } = makeUkemi(url);
  ukemi.on("stripe", TYPE, () => {});
  await expect(ukemi.work()).rejects.toThrow(`needs code that knows version ${next}`);
});
