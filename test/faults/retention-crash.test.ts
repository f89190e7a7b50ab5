// The pruner dies with SIGKILL at every named place: nothing that must stay is lost, nothing is left over, every removal is
// audited once, and the next run completes it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { CRASH_POINTS } from "../../src/crash-point.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { makeDead, MANDATE, readAudit, register } from "../support/dead.ts";
import { addFinished, bodiesOf, countRows, finishJobs, letPass, retentionOn } from "../support/retention.ts";
import { cleanEnv } from "../support/server.ts";
import { until } from "../support/until.ts";
import { readJobs, storeElsewhere } from "../support/work.ts";

const APP = fileURLToPath(new URL("../support/prune-app.mjs", import.meta.url));
const TASKS = 3500;
const BULK = 300;

/** Prunes in a process of its own, which dies at the place. */
async function dieAt(url: string, place: string): Promise<void> {
  const child = spawn(process.execPath, [APP], {
    env: { ...cleanEnv(), DATABASE_URL: url, UKEMI_CRASH_AT: place },
    stdio: "inherit",
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "close");
  expect(child.signalCode, `died at ${place}`).toBe("SIGKILL");
}

/** The server ends what a dead process has begun a moment later. */
const untilEnded = (pool: Pool) =>
  until(
    async () =>
      (
        await pool.query(
          `select from pg_stat_activity
           where datname = current_database() and application_name like 'ukemi%' and state <> 'idle'`,
        )
      ).rowCount === 0,
    "the dead process's transactions end",
  );

const PASSES = CRASH_POINTS.filter((point) => point.startsWith("retention.")).flatMap((point) =>
  // the first batch finds nothing: it looks for bodies outside the months
  (point === "retention.batch_removed" ? [2, 3, 5] : [1]).map((pass) => ({ point, pass })),
);

test.each(PASSES)("completes what a pruner left that died at $point, pass $pass", async ({ point, pass }) => {
  const store = await createDatabase();
  const { url, pool } = store;
  await register(pool);
  await makeDead(store, ["evt_dead"]);
  await storeElsewhere(url, ["evt_done", "evt_ready"]);
  await finishJobs(pool, ["evt_done"]);
  await addFinished(pool, BULK);
  await pool.query(
    `insert into ukemi.jobs (queue, kind, subscription, state, max_attempts, policy, run_at, created_at, finished_at)
     select 'q', 'task', 't', 'done', 4, 'quick', ukemi.now(), ukemi.now(), ukemi.now() from generate_series(1, ${TASKS})`,
  );
  await letPass(pool, 200);

  await dieAt(url, `${point}:${pass}`);
  await untilEnded(pool);
  const stays = async () => {
    const bodies = await bodiesOf(pool);
    expect(bodies).toContain("evt_dead");
    expect(bodies).toContain("evt_ready");
    const jobs = await readJobs(pool);
    expect(jobs.filter((job) => job.state !== "done").map((job) => job.event_id)).toEqual([
      "evt_dead",
      "evt_ready",
    ]);
  };
  await stays();
  // it may still live, for all that others know
  await expect(retentionOn(pool).prune(MANDATE)).rejects.toMatchObject({ code: "contended" });
  await pool.query("update ukemi.clock set shift = shift + interval '1 minute'");
  const result = await retentionOn(pool).prune(MANDATE);
  expect(result).toMatchObject({ held_up: [], stopped: false });
  await stays();
  expect(await bodiesOf(pool)).toEqual(["evt_dead", "evt_ready"]);
  expect(await countRows(pool, "jobs")).toBe(2);
  const { rows: tables } = await pool.query(
    "select relname from pg_class where relname like '%kept%' and relnamespace = 'ukemi'::regnamespace",
  );
  expect(tables, "nothing is left over").toEqual([]);
  const audit = await readAudit(pool);
  const sum = (name: string) =>
    audit.reduce((total, row) => total + Number((row.details as Record<string, unknown>)[name] ?? 0), 0);
  expect({ jobs: sum("jobs"), bodies: sum("bodies") }, "every removal is audited once").toEqual({
    jobs: TASKS + 1,
    bodies: BULK + 1,
  });
  const before = audit.some((row) => row.actor === "test:child");
  expect(before, "what was removed before the crash is audited in its own name").toBe(
    point !== "retention.kept_copied",
  );
});

test("completes what a pruner left that died in the midst of effects, each audited once", async () => {
  const { url, pool } = await createDatabase();
  await pool.query(
    `insert into ukemi.effects (id, kind, dedupe_key, state, target, intent, destination, on_uncertain, max_attempts,
       planned_at, ended_at)
     select gen_random_uuid(), 'http', n::text, case when n > 250 then 'held' else 'done' end, 't', '{"body":"x"}', 'd',
       'hold', 3, ukemi.now(), case when n <= 250 then ukemi.now() end
     from generate_series(1, 260) as n`,
  );
  await pool.query(
    `insert into ukemi.effect_attempts (effect, number, started_at, ended_at, result)
     select id, 1, ukemi.now(), ukemi.now(), 'done' from ukemi.effects`,
  );
  await letPass(pool, 200);
  const left = async () =>
    (await pool.query("select from ukemi.effects where intent <> '{}' and state = 'done'")).rowCount;
  // bodies outside the months, operations, the first hundred effects
  await dieAt(url, "retention.batch_removed:3");
  await untilEnded(pool);
  expect(await left()).toBe(150);
  await pool.query("update ukemi.clock set shift = shift + interval '1 minute'");
  expect(await retentionOn(pool).prune(MANDATE)).toMatchObject({ effects: 150, effect_attempts: 150 });
  expect(await left()).toBe(0);
  expect(await countRows(pool, "effects")).toBe(260);
  expect(await countRows(pool, "effect_attempts"), "those of the held").toBe(10);
  const audits = (await readAudit(pool))
    .filter(({ target }) => target === "rows")
    .map(({ details }) => details as Record<string, number>);
  expect(audits.map(({ effects, effect_attempts }) => [effects, effect_attempts])).toEqual([
    [100, 100],
    [150, 150],
  ]);
});
