// The connection is cut exactly at COMMIT: whatever became of it, the job is never run twice to effect.
import { expect, test } from "vitest";
import { startCommitProxy, type CommitFault } from "../support/commit-proxy.ts";
import { createDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";
import { storeElsewhere, untilDrained } from "../support/work.ts";
import {
  createWorkplace,
  eventIds,
  expectAllDone,
  expectWrittenOnce,
  recoveriesOf,
} from "../support/worker-process.ts";

const EVENTS = 20;
/** So many that each changes a row of its own: a trip that stands still holds up nobody else. */
const EVENTS_APART = 16;

interface Case {
  readonly what: string;
  readonly fault: CommitFault;
  readonly which: (index: number) => boolean;
  /** Whether the handler has to run again. */
  readonly again: boolean;
}

const CASES: readonly Case[] = [
  { what: "before the server got it", fault: "lost", which: (index) => index % 2 === 0, again: true },
  { what: "after it was committed", fault: "unanswered", which: (index) => index % 2 === 0, again: false },
  { what: "and the server does not notice", fault: "stranded", which: (index) => index === 3, again: true },
  { what: "and it comes late", fault: "late", which: (index) => index === 3, again: false },
];

const ALL = [false, true].flatMap((shared) =>
  [false, true].flatMap((oneTrip) =>
    // a trip that comes late is one that was stranded: the server ends it when the client gives up
    CASES.filter(({ fault }) => !(oneTrip && fault === "late")).map((one) => ({
      ...one,
      shared,
      oneTrip,
      commit: `${shared ? "a shared" : "a"} ${oneTrip ? "trip" : "COMMIT"}`,
    })),
  ),
);

test.each(ALL)("runs no job twice to effect where $commit is cut $what", async (one) => {
  const { fault, which, again, shared, oneTrip } = one;
  const count = oneTrip && fault === "stranded" ? EVENTS_APART : EVENTS;
  const place = await createWorkplace(await createDatabase());
  const { url, pool } = place;
  const proxy = await startCommitProxy(url, { after: "insert into written", oneTrip, fault, which });
  const worker = await place.start({
    env: { DATABASE_URL: proxy.url },
    // a transaction that the server holds for dead only by its idle limit ends before the lease does
    ukemi: {
      concurrency: shared ? EVENTS : 4,
      leaseMs: fault === "late" ? 30_000 : 3000,
      logLevel: "debug",
      // and one whose end never comes by its limit as a whole: this one, and ten seconds
      ...(oneTrip && fault === "stranded" ? { timeLimitMs: 500 } : {}),
    },
    shared,
    sends: oneTrip,
  });
  const all = eventIds(count, () => "_ms5");
  await storeElsewhere(url, all);

  if (fault === "late") {
    // the worker has given up, and asks whether the job is still its own: the open transaction holds that up
    await until(() => waitsForLock(), "the worker to look into it", 20_000);
    proxy.deliver();
  }
  const jobs = await untilDrained(pool);
  const begun = place.notes().filter(({ what }) => what === "begin").length;
  console.log(`${proxy.faults()} commits ${fault}; ${count} events, ${begun} runs begun`);
  expect(proxy.faults(), "commits that were cut").toBeGreaterThan(0);
  // those that share a commit also run again where they were in each other's way
  if (!shared) expect(begun, "runs").toBe(count + (again ? proxy.faults() : 0));
  else if (again) expect(begun, "runs").toBeGreaterThanOrEqual(count + proxy.faults());
  await expectAllDone(pool, all);
  await expectWrittenOnce(place, all);
  expect(recoveriesOf(jobs), "a cut connection is no crash").toBe(`0: ${count}`);
  expect(await worker.kill("SIGTERM")).toBe(0);

  async function waitsForLock(): Promise<boolean> {
    const { rowCount } = await pool.query(
      `select from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and query like '%ukemi.jobs%'`,
    );
    return rowCount !== 0;
  }
});
