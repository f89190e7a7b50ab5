// Lists that no index serves: each page looks through so many rows at the most, and all pages together miss and repeat nothing.
import { expect, test } from "vitest";
import type { AuditFilter } from "../../src/storage/audit-list.ts";
import { listAudit } from "../../src/storage/audit-list.ts";
import type { Page } from "../../src/storage/conditions.ts";
import { listJobs, type JobFilter, type ListedJob } from "../../src/storage/job-list.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import type { SiftOptions } from "../../src/storage/sift.ts";
import { createDatabase } from "../support/database.ts";

const JOBS = 400;
const START = Date.parse("2026-11-01T00:00:00Z");
const HOUR_MS = 3_600_000;

/** A job an hour: every seventh of another handler, every eleventh dead, three queues, two tenants. */
async function fill(pool: Pool): Promise<void> {
  await pool.query(
    `insert into ukemi.subscriptions (name, source, pattern)
     values ('common', 'stripe', '*'), ('rare', 'stripe', '*') on conflict do nothing`,
  );
  await pool.query(
    `insert into ukemi.jobs (queue, kind, subscription, tenant, state, attempt, max_attempts, policy, run_at, created_at,
       finished_at, death)
     select 'q' || n % 3, 'task', case when n % 7 = 0 then 'rare' else 'common' end, 'org_' || n % 2,
       case when n % 11 = 0 then 'dead' else 'done' end, 1, 4, 'quick', t.at, t.at, t.at,
       case when n % 11 = 0 then 'exhausted' end
     from generate_series(1, ${JOBS}) as n
     cross join lateral (select $1::timestamptz + n * interval '1 hour' as at) as t`,
    [new Date(START)],
  );
  await pool.query(
    `insert into ukemi.audit_log (actor, role, action, target, tenant, at, details)
     select case when n % 13 = 0 then 'cli:jane' else 'stripe/charge' end, case when n % 13 = 0 then 'operator' else 'handler' end,
       'did.' || n % 5, n::text, 'org_' || n % 2, $1::timestamptz + n * interval '1 hour', '{}'
     from generate_series(1, ${JOBS}) as n`,
    [new Date(START)],
  );
}

async function walk<T>(list: (options: SiftOptions) => Promise<Page<T>>, rowsMost: number, limit: number) {
  const items: T[] = [];
  let before: string | undefined;
  let pages = 0;
  do {
    const page: Page<T> = await list({ limit, rowsMost, before });
    expect(page.items.length).toBeLessThanOrEqual(limit);
    items.push(...page.items);
    before = page.cursor;
    pages += 1;
    expect(pages).toBeLessThanOrEqual(JOBS + 1);
  } while (before !== undefined);
  return { items, pages };
}

const at = (hours: number) => new Date(START + hours * HOUR_MS);

const JOB_FILTERS: readonly [JobFilter, (n: number) => boolean][] = [
  [{}, () => true],
  [{ handler: "rare" }, (n) => n % 7 === 0],
  [{ handler: "nobody" }, () => false],
  [{ queue: "q1", state: "done" }, (n) => n % 3 === 1 && n % 11 !== 0],
  [{ state: "dead", handler: "rare" }, (n) => n % 77 === 0],
  [{ tenant: "org_1", queue: "q2" }, (n) => n % 2 === 1 && n % 3 === 2],
  [{ tenants: ["org_0"], handler: "rare" }, (n) => n % 14 === 0],
  [{ key: "none" }, () => false],
  [{ until: at(50) }, (n) => n < 50],
  [{ since: at(350) }, (n) => n >= 350],
  [{ since: at(100), until: at(120), handler: "rare" }, (n) => n >= 100 && n < 120 && n % 7 === 0],
  [{ worker: "00000000-0000-7000-8000-000000000000" }, () => false],
  [{ worker: "host/1" }, () => false],
];

const AUDIT_FILTERS: readonly [AuditFilter, (n: number) => boolean][] = [
  [{}, () => true],
  [{ actor: "cli:jane" }, (n) => n % 13 === 0],
  [{ actor: "cli:*" }, (n) => n % 13 === 0],
  [{ actor: "nobody" }, () => false],
  [{ role: "people", action: "did.3" }, (n) => n % 13 === 0 && n % 5 === 3],
  [{ role: "operator" }, (n) => n % 13 === 0],
  [{ role: "handler", tenant: "org_1", action: "did.*" }, (n) => n % 13 !== 0 && n % 2 === 1],
  [{ target: "77", actor: "stripe/charge" }, (n) => n === 77],
  [{ until: at(30) }, (n) => n < 30],
  [{ since: at(200), until: at(300), actor: "cli:jane" }, (n) => n >= 200 && n < 300 && n % 13 === 0],
];

test("whatever is asked for, all pages together are what a look at every row gives", async () => {
  const { pool } = await createDatabase();
  await fill(pool);
  const newestFirst = (keep: (n: number) => boolean) =>
    Array.from({ length: JOBS }, (_, index) => JOBS - index).filter(keep);
  for (const [limit, rowsMost] of [
    [10, 10],
    [3, 50],
    [50, 7],
    [200, 100_000],
    [1, 1],
  ] as const) {
    for (const [filter, keep] of JOB_FILTERS) {
      const { items } = await walk((options) => listJobs(pool, filter, options), rowsMost, limit);
      expect(
        items.map(({ id }) => id),
        JSON.stringify({ filter, limit, rowsMost }),
      ).toEqual(newestFirst(keep));
    }
    for (const [filter, keep] of AUDIT_FILTERS) {
      const { items } = await walk((options) => listAudit(pool, filter, options), rowsMost, limit);
      expect(
        items.map(({ target }) => Number(target)),
        JSON.stringify({ filter, limit, rowsMost }),
      ).toEqual(newestFirst(keep));
    }
  }
}, 120_000);

test("does not look on behind the time that was asked for, nor where everything was looked through", async () => {
  const { pool } = await createDatabase();
  await fill(pool);
  const pagesOf = async (filter: JobFilter) =>
    (await walk((options) => listJobs(pool, filter, options), 20, 10)).pages;
  expect(await pagesOf({ since: at(390), handler: "nobody" })).toBe(1);
  expect(await pagesOf({ handler: "nobody" })).toBe(JOBS / 20 + 1);
  // no index knows these two states: a page must not look through everything
  expect(await pagesOf({ state: "cancelled" })).toBe(JOBS / 20 + 1);
  expect(await pagesOf({ state: "done", handler: "nobody" })).toBe(JOBS / 20 + 1);
  // one that an index knows is looked for at once
  expect(await pagesOf({ state: "ready" })).toBe(1);
  expect((await walk((options) => listJobs(pool, { handler: "nobody" }, options), JOBS + 1, 20)).pages).toBe(
    1,
  );
});

test("rows that are committed while the pages are turned neither come twice nor push others out", async () => {
  const { pool } = await createDatabase();
  await fill(pool);
  const seen: number[] = [];
  let before: string | undefined;
  do {
    const page: Page<ListedJob> = await listJobs(
      pool,
      { handler: "rare" },
      { limit: 5, rowsMost: 20, before },
    );
    seen.push(...page.items.map(({ id }) => id));
    before = page.cursor;
    await fill(pool);
  } while (before !== undefined);
  expect(seen).toEqual(Array.from({ length: JOBS }, (_, index) => JOBS - index).filter((n) => n % 7 === 0));
});
