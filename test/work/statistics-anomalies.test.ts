// Hours that were unusual: written down once, told once, by whoever was first.
import { expect, test } from "vitest";
import type { Alert } from "../../src/observe/alerts.ts";
import { countEvents, createStatisticsRound, judgeHours } from "../../src/operate/statistics-round.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { operateOn } from "../support/dead.ts";

const HOUR_MS = 3_600_000;
const WEEK = 168;

/** Counts of ten weeks, as if somebody had counted all the time; `received` says how many in which hour before now. */
async function pretend(
  pool: Pool,
  types: Readonly<Record<string, (hoursAgo: number) => number>>,
): Promise<void> {
  for (const [type, received] of Object.entries(types)) {
    const counts = Array.from({ length: 10 * WEEK }, (_, index) => received(index + 1));
    await pool.query(
      `insert into ukemi.event_hours
         (source, type, hour, tenant, received, success, failed, skipped, unrouted, last_received_at)
       select 'stripe', $1, h.hour, t.tenant, t.part, 0, 0, 0, 0, h.hour
       from unnest($2::int[]) with ordinality as c (count, ago)
       cross join lateral (select date_trunc('hour', ukemi.now(), 'UTC') - ago * interval '1 hour' as hour) as h
       -- of two tenants: only their sum is usual
       cross join lateral (values ('acme', c.count / 2), ('', c.count - c.count / 2)) as t (tenant, part)
       where t.part > 0
       on conflict (source, type, hour, tenant) do update set received = excluded.received`,
      [type, counts],
    );
  }
}

/** Lets everything of an hour ago be judged as the last hour that is over. */
async function settle(pool: Pool): Promise<void> {
  await pool.query(`
    update ukemi.counting
    set running_since = ukemi.now() - interval '70 days', judged_until = date_trunc('hour', ukemi.now(), 'UTC') - interval '1 hour',
      counted_until = date_trunc('hour', ukemi.now(), 'UTC') + interval '5 minutes'`);
}

/** Half past the hour: a test must not run into the next. */
async function pinClock(pool: Pool): Promise<void> {
  await pool.query(
    "update ukemi.clock set shift = date_trunc('hour', clock_timestamp(), 'UTC') + interval '30 minutes' - clock_timestamp()",
  );
}

const pass = (pool: Pool, time: string) =>
  pool.query("update ukemi.clock set shift = shift + $1::interval", [time]);

const span = () => ({
  since: new Date(Date.now() - 200 * HOUR_MS),
  until: new Date(Date.now() + 200 * HOUR_MS),
});

test("tells of a flood, a drop and a silence once, whoever looks, and of their end", async () => {
  const { pool } = await createDatabase();
  await pinClock(pool);
  await pretend(pool, {
    usual: () => 100,
    flood: (ago) => (ago === 1 ? 400 : 100),
    drop: (ago) => (ago === 1 ? 10 : 100),
    gone: (ago) => (ago === 1 ? 0 : 100),
    rare: (ago) => (ago % 5 === 0 ? 1 : 0),
    new: (ago) => (ago < 20 ? 1000 : 0),
  });
  await settle(pool);
  const told = (await Promise.all([judgeHours(pool), judgeHours(pool), judgeHours(pool)])).flat();
  const { rows } = await pool.query<{ hour: Date }>(
    "select date_trunc('hour', ukemi.now(), 'UTC') - interval '1 hour' as hour",
  );
  const lastHour = rows[0]!.hour.toISOString();
  const fact = { hour: lastHour, source: "stripe", ended_at: null };
  expect(told.toSorted((a, b) => a.id - b.id)).toMatchObject([
    { ...fact, type: "drop", kind: "low", received: 10, expected_low: 40, expected_high: 164, is_news: true },
    { ...fact, type: "flood", kind: "high", received: 400 },
    { ...fact, type: "gone", kind: "silent", received: 0 },
  ]);
  expect(await judgeHours(pool)).toEqual([]);
  const { statistics } = operateOn(pool);
  const first = await statistics.anomalies({ ...span(), limit: 2 });
  expect(first.items.map(({ type }) => type)).toEqual(["gone", "flood"]);
  const second = await statistics.anomalies({ ...span(), limit: 2, cursor: first.cursor });
  expect(second.items.map(({ type }) => type)).toEqual(["drop"]);
  expect(second).not.toHaveProperty("cursor");
  expect(await statistics.anomalies({ ...span(), tenants: ["acme"] })).toEqual({ items: [] });

  // an hour later the flood goes on, the drop is over, and nothing has come of what was gone
  await pass(pool, "1 hour");
  await pretend(pool, {
    usual: () => 100,
    flood: (ago) => (ago <= 2 ? 400 : 100),
    drop: (ago) => (ago === 2 ? 10 : 100),
  });
  await settle(pool);
  expect(await judgeHours(pool)).toEqual([]);
  expect(await openKinds(pool)).toEqual(["high", "silent"]);

  // and another hour later everything is as usual
  await pass(pool, "1 hour");
  await pretend(pool, {
    usual: () => 100,
    flood: () => 100,
    drop: () => 100,
    gone: (ago) => (ago === 1 ? 100 : 0),
  });
  await settle(pool);
  expect(await judgeHours(pool)).toEqual([]);
  expect(await openKinds(pool)).toEqual([]);
  const { items } = await statistics.anomalies(span());
  expect(items.map((item) => Date.parse(item.ended_at!) - Date.parse(item.hour))).toEqual([
    2 * HOUR_MS,
    2 * HOUR_MS,
    HOUR_MS,
  ]);

  // the same again on the same day is written down, and not told
  await pass(pool, "1 hour");
  await pretend(pool, { usual: () => 100, flood: (ago) => (ago === 1 ? 400 : 100), drop: () => 100 });
  await settle(pool);
  expect((await judgeHours(pool)).filter(({ type }) => type === "flood")).toMatchObject([
    { kind: "high", is_news: false },
  ]);
});

async function openKinds(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ kind: string }>(
    "select kind from ukemi.anomalies where ended_at is null order by kind",
  );
  return rows.map(({ kind }) => kind);
}

test("the round raises the alert and counts it; hours in which nobody counted are not judged", async () => {
  const { pool } = await createDatabase();
  await pinClock(pool);
  const alerts: Alert[] = [];
  const noticed: unknown[] = [];
  const round = createStatisticsRound({
    alert: (alert) => alerts.push(alert),
    noticed: (one) => noticed.push(one),
  });
  const never = new AbortController().signal;
  await pretend(pool, { gone: (ago) => (ago <= 3 ? 0 : 100) });
  // nobody has ever counted: that none came in the last hours says nothing
  expect(await round.run(pool, never)).toBeGreaterThanOrEqual(60_000);
  expect(alerts).toEqual([]);
  // an hour later it does; the count is made every minute, so there is no break in it
  await pool.query(
    "update ukemi.counting set running_since = running_since - interval '2 hours', counted_until = null",
  );
  for (let counts = 0; counts < 3; counts += 1) {
    await pass(pool, "45 minutes");
    await countEvents(pool, { recentMs: 0 });
  }
  await pass(pool, "10 minutes");
  await round.run(pool, never);
  expect(alerts).toMatchObject([
    { kind: "volume_unusual", source: "stripe", type: "gone", volume: "silent", received: 0 },
  ]);
  expect(noticed).toHaveLength(1);
  // after a break of a day nothing is told of it
  await pretend(pool, { other: (ago) => (ago > 24 ? 100 : 0) });
  await pass(pool, "28 hours");
  await round.run(pool, never);
  expect(alerts).toHaveLength(1);
});
