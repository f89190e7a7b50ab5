// PostgreSQL restarts under handlers that are in the middle of their work: that is no crash of theirs.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startEmbedded } from "../../src/storage/embedded/embedded.ts";
import { migrateStore } from "../../src/storage/open.ts";
import { openPool } from "../../src/storage/postgres.ts";
import { seededRandom } from "../support/seed.ts";
import { until } from "../support/until.ts";
import { createDatabase } from "../support/database.ts";
import { storeElsewhere, untilDrained } from "../support/work.ts";
import {
  createWorkplace,
  eventIds,
  expectAllDone,
  expectWrittenOnce,
  recoveriesOf,
} from "../support/worker-process.ts";

const RESTARTS = 3;
const EVENTS_PER_RESTART = 30;

test.each([
  ["comes back at once", { leaseMs: 30_000 }, 0],
  ["stays away for longer than the lease", { leaseMs: 1500 }, 2500],
])("burns nothing when a PostgreSQL that is ended in mid-handler %s", async (_, ukemi, awayMs) => {
  const random = seededRandom("work-postgres-restart");
  const data = await mkdtemp(join(tmpdir(), "ukemi-work-postgres-"));
  onTestFinished(() => rm(data, { recursive: true, force: true }));
  let postgres = await startEmbedded({ data });
  onTestFinished(() => postgres.stop());
  const { url } = postgres;
  await migrateStore(url);
  const pool = openPool(url, { max: 2 });
  onTestFinished(() => pool.end());
  const place = await createWorkplace({ url, pool });
  const workers = await Promise.all([place.start({ ukemi }), place.start({ ukemi })]);
  const all = eventIds(RESTARTS * EVENTS_PER_RESTART, () => `_ms${20 + random.below(200)}`);
  const count = (wanted: string) => place.notes().filter(({ what }) => what === wanted).length;

  for (let restart = 0; restart < RESTARTS; restart++) {
    const before = count("wrote");
    await storeElsewhere(url, all.slice(restart * EVENTS_PER_RESTART, (restart + 1) * EVENTS_PER_RESTART));
    const fewest = 1 + random.below(EVENTS_PER_RESTART / 2);
    await until(() => count("wrote") >= before + fewest, `${fewest} more handlers to have written`);
    process.kill(postgres.pid, "SIGQUIT");
    await postgres.stop(); // waits for its end
    // nobody can be asked how much of a lease is left: this one wait is for a time
    await new Promise((resolve) => setTimeout(resolve, awayMs));
    postgres = await startEmbedded({ data });
    expect(postgres.url, "the address stays the same").toBe(url);
    await until(
      () => workers.every((worker) => worker.registrations() === restart + 2),
      "both workers to register anew",
    );
  }

  const jobs = await untilDrained(pool);
  console.log(
    `${all.length} events, ${count("begin")} runs begun, ${count("end")} ended; ` +
      `jobs by recoveries: ${recoveriesOf(jobs)}`,
  );
  expect(count("begin"), "a restart that cuts no handler proves nothing").toBeGreaterThan(all.length);
  await expectAllDone(pool, all);
  await expectWrittenOnce(place, all);
  expect(recoveriesOf(jobs), "a restart of the server is no crash").toBe(`0: ${all.length}`);
  for (const worker of workers) expect(await worker.kill("SIGTERM")).toBe(0);
});

test("burns nothing when only the session by which a worker is known to live is ended", async () => {
  const place = await createWorkplace(await createDatabase());
  const { url, pool } = place;
  const worker = await place.start({ gate: true });
  const held = eventIds(5, () => "_held");
  await storeElsewhere(url, held);
  const count = (wanted: string) => place.notes().filter(({ what }) => what === wanted).length;
  await until(() => count("wrote") === held.length, "the handlers to have written");

  await pool.query(`
    select pg_terminate_backend(l.pid)
    from pg_locks l
    where l.locktype = 'advisory' and l.objsubid = 2 and l.granted
      and l.database = (select d.oid from pg_database d where d.datname = current_database())`);
  await until(() => worker.registrations() === 2, "the worker to register anew");
  await until(() => count("wrote") === 2 * held.length, "the handlers to have written once more");
  place.openGate();
  const jobs = await untilDrained(pool);
  await expectAllDone(pool, held);
  await expectWrittenOnce(place, held);
  expect(recoveriesOf(jobs)).toBe(`0: ${held.length}`);
  expect(await worker.kill("SIGTERM")).toBe(0);
});
