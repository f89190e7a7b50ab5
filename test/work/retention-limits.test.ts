// Processes with different limits on one store: the longest counts, whoever prunes.
import { expect, test } from "vitest";
import { createOperate } from "../../src/operate/operate.ts";
import { createRetentionRound } from "../../src/operate/retention.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import type { RetentionLimits } from "../../src/storage/retention.ts";
import { runCli } from "../support/cli.ts";
import { createDatabase } from "../support/database.ts";
import { MANDATE, readAudit, register } from "../support/dead.ts";
import { bodiesOf, countRows, finishJobs, letPass, LIMITS, retentionOn } from "../support/retention.ts";
import { until } from "../support/until.ts";
import { makeUkemi, storeElsewhere } from "../support/work.ts";

const never = new AbortController().signal;

/** A process with these limits, of which only the pruning is looked at. */
function processOn(pool: Pool, limits: Partial<RetentionLimits> = {}) {
  const news: { level: string; fields: unknown }[] = [];
  const round = createRetentionRound({ ...LIMITS, ...limits }, (level, _, fields) =>
    news.push({ level, fields }),
  );
  return {
    comesRound: () => round.run(pool, never),
    warnings: () => news.filter(({ level }) => level === "warn").map(({ fields }) => fields),
  };
}

/** A finished event that is 200 days old, with its body, its job and its attempt. */
async function startOld() {
  const store = await createDatabase();
  await register(store.pool);
  await storeElsewhere(store.url, ["evt_1"]);
  await finishJobs(store.pool);
  await letPass(store.pool, 200);
  return store;
}

const due = (pool: Pool) => pool.query("update ukemi.retention set due_at = null");

const rowsAudit = async (pool: Pool) => (await readAudit(pool)).filter((row) => row.target === "rows");

test.each(["the one that keeps", "the one that does not"])(
  "keeps what one of two keeps for ever, where %s begins",
  async (first) => {
    const { pool } = await startOld();
    const keeps = processOn(pool, { bodyDays: 0 });
    const prunes = processOn(pool);
    const both = first === "the one that keeps" ? [keeps, prunes] : [prunes, keeps];
    for (const process of both) await process.comesRound();
    for (const process of [...both, ...both]) {
      await due(pool);
      await process.comesRound();
    }
    expect(await bodiesOf(pool)).toEqual(["evt_1"]);
    // what both let go is gone
    expect([await countRows(pool, "jobs"), await countRows(pool, "attempts")]).toEqual([0, 0]);
    expect(prunes.warnings(), "said once").toEqual([{ held_back: "bodyDays 90 gives way to 0 (for ever)" }]);
    expect(keeps.warnings()).toEqual([]);
    expect(await rowsAudit(pool)).toMatchObject([
      {
        details: {
          reason: "bodyDays 0, attemptDays 30, jobDays 30, effectDays 90",
          body_days: 0,
          attempt_days: 30,
          job_days: 30,
        },
      },
    ]);
  },
);

test("takes each limit from whoever has it longest", async () => {
  const { pool } = await startOld();
  const first = processOn(pool, { bodyDays: 400, jobDays: 7, attemptDays: 100 });
  const second = processOn(pool, { bodyDays: 30, jobDays: 300, attemptDays: 20 });
  await first.comesRound();
  await second.comesRound();
  await second.comesRound();
  expect(await bodiesOf(pool)).toEqual(["evt_1"]);
  expect([await countRows(pool, "jobs"), await countRows(pool, "attempts")]).toEqual([1, 0]);
  expect(await rowsAudit(pool)).toMatchObject([
    { details: { attempts: 1, body_days: 400, attempt_days: 100, job_days: 300 } },
  ]);
  expect(second.warnings()).toEqual([
    { held_back: "bodyDays 30 gives way to 400, attemptDays 20 gives way to 100" },
  ]);
});

test("heeds one that comes later from its first moment, before it prunes itself", async () => {
  const { url, pool } = await createDatabase();
  await register(pool);
  await storeElsewhere(url, ["evt_1"]);
  await finishJobs(pool);
  const prunes = processOn(pool);
  await prunes.comesRound();
  await prunes.comesRound();
  await letPass(pool, 200);
  await makeUkemi(url, { bodyDays: 0, jobDays: 0 }).ukemi.start();
  const said = "select from ukemi.retention_limits where body_days = 0 and job_days = 0";
  await until(async () => (await pool.query(said)).rowCount === 1, "the late one to say its limits");
  await prunes.comesRound();
  expect(await bodiesOf(pool)).toEqual(["evt_1"]);
  expect([await countRows(pool, "jobs"), await countRows(pool, "attempts")]).toEqual([1, 0]);
});

test("is heard of also while it is another's turn, and forgotten two days after it has gone", async () => {
  const { pool } = await startOld();
  const keeps = processOn(pool, { bodyDays: 0 });
  const prunes = processOn(pool);
  await prunes.comesRound();
  await keeps.comesRound();
  for (let day = 0; day < 4; day++) {
    await letPass(pool, 1);
    await prunes.comesRound();
    // the other has pruned a moment ago: this one only says that it is there
    expect(await keeps.comesRound()).toBeLessThanOrEqual(3_600_000);
  }
  expect(await bodiesOf(pool)).toEqual(["evt_1"]);
  await letPass(pool, 1.9);
  await prunes.comesRound();
  expect(await bodiesOf(pool), "not yet forgotten").toEqual(["evt_1"]);
  await letPass(pool, 0.2);
  await prunes.comesRound();
  expect(await bodiesOf(pool)).toEqual([]);
  expect(await countRows(pool, "retention_limits")).toBe(1);
});

test("an operator sees and prunes by the longest limits; one that is named holds as it is", async () => {
  const { pool } = await startOld();
  await processOn(pool, { bodyDays: 0, jobDays: 500 }).comesRound();
  const agreed = retentionOn(pool);
  expect(await agreed.preview()).toMatchObject({
    body_days: 0,
    attempt_days: 30,
    job_days: 500,
    longer_elsewhere: ["body_days", "job_days"],
    months: [],
    jobs: { count: 0 },
    attempts: { count: 1 },
  });
  expect(await agreed.prune(MANDATE)).toMatchObject({ bodies: 0, jobs: 0, attempts: 1 });
  const open = () => Promise.resolve(pool);
  const { retention } = createOperate({ open, limits: LIMITS, namedLimits: ["bodyDays"] });
  const preview = await retention.preview();
  expect(preview).toMatchObject({ body_days: 90, job_days: 500, longer_elsewhere: ["job_days"] });
  expect(preview.months[0]).toMatchObject({ bodies: { count: 1 }, kept: { count: 0 } });
  expect(await retention.prune(MANDATE)).toMatchObject({ bodies: 1, jobs: 0 });
  const month = (await readAudit(pool)).find((row) => row.target !== "rows");
  expect(month).toMatchObject({ details: { bodies: 1, body_days: 90 } });
});

test("ukemi prune says where another process keeps longer, and takes a flag at its word", async () => {
  const { url, pool } = await startOld();
  await processOn(pool, { bodyDays: 0 }).comesRound();
  const prune = (...flags: string[]) =>
    runCli(["prune", "--reason", "a small disk", ...flags], { DATABASE_URL: url, UKEMI_BODY_DAYS: "60" });
  const kept = await prune("--yes");
  expect(kept.output).toContain(
    "Kept: bodies for ever, as another process has it; attempts 30 days; finished jobs 30 days; what effects held 90 days.",
  );
  expect(kept.stdout).toContain("Pruned 0 bodies (0 months), 1 jobs, 1 attempts.");
  expect(await bodiesOf(pool)).toEqual(["evt_1"]);
  const dry = await prune("--dry-run", "--body-days", "90");
  expect(dry.stdout).toContain(
    "Kept: bodies 90 days, attempts 30 days, finished jobs 30 days, what effects held 90 days.",
  );
  expect(await bodiesOf(pool)).toEqual(["evt_1"]);
  expect((await prune("--yes", "--body-days", "90")).stdout).toContain("Pruned 1 bodies (");
  expect(await bodiesOf(pool)).toEqual([]);
});
