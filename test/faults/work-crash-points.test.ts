// A crash exactly here: at every named place of the work the process dies with SIGKILL, and the next one mends it.
import { expect, test } from "vitest";
import { CRASH_POINTS } from "../../src/crash-point.ts";
import { createDatabase } from "../support/database.ts";
import { storeElsewhere, untilDrained } from "../support/work.ts";
import {
  createWorkplace,
  eventIds,
  expectAllDone,
  expectWrittenOnce,
  recoveriesOf,
} from "../support/worker-process.ts";

const EVENTS = 12;

const SHARED = "work.before_shared_commit";

const PASSES = CRASH_POINTS.filter((point) => point.startsWith("work.") && point !== SHARED).flatMap(
  (point) =>
    // the first pass, and where it leaves something else behind, a later one: something has been settled already
    (point === "work.claimed" || point === "work.before_settle" ? [1] : [1, 5]).map((pass) => ({
      point,
      pass,
      commit: "its own",
    })),
);

/** Among them between a savepoint and the commit: handlers before it have ended, others have not begun. */
const SHARED_PASSES = (
  [
    ["work.before_settle", 1],
    ["work.before_settle", 7],
    [SHARED, 1],
    [SHARED, 3],
    ["work.before_commit", 1],
    ["work.after_commit", 1],
    ["work.after_commit", 5],
  ] as const
).map(([point, pass]) => ({ point, pass, commit: "a shared" }));

/** The same where handlers wait for none of their statements. */
const IN_ONE_TRIP = [...PASSES, ...SHARED_PASSES]
  .filter(({ point }) =>
    ["work.before_settle", "work.before_commit", "work.after_commit", SHARED].includes(point),
  )
  .map((pass) => ({ ...pass, sends: true, trip: "in one trip" }));

const WITH_TRIPS = [...PASSES, ...SHARED_PASSES].map((pass) => ({ ...pass, sends: false, trip: "begun" }));

test.each([...WITH_TRIPS, ...IN_ONE_TRIP])(
  "converges after a crash at $point, pass $pass, with $commit commit, $trip",
  async ({ point, pass, commit, sends }) => {
    const shared = commit === "a shared";
    const place = await createWorkplace(await createDatabase());
    const { url, pool } = place;
    const all = eventIds(EVENTS, () => "_ms10");
    await storeElsewhere(url, all);
    // alone runs only what was running in a process that died: that has to happen first
    if (point === "work.alone") await crash("work.claimed:6");
    await crash(`${point}:${pass}`);
    // in one statement: what the dead process had sent is still being committed
    const { rows } = await pool.query<{ written: number; done: number }>(
      `select (select count(*)::int from written) as written,
         (select count(*)::int from ukemi.jobs where state = 'done') as done`,
    );
    const { written, done } = rows[0]!;
    expect(done, "what is written and what is done are one commit").toBe(written);
    if (point === "work.after_commit") expect(done).toBeGreaterThanOrEqual(pass);
    const isFirstCommit = pass === 1 && (point === "work.before_commit" || point === SHARED);
    if (isFirstCommit) expect(done).toBe(0);

    const again = await place.start({ shared, sends });
    const jobs = await untilDrained(pool);
    const begun = place.notes().filter(({ what }) => what === "begin").length;
    console.log(`${done} done before, ${begun} runs begun; jobs by recoveries: ${recoveriesOf(jobs)}`);
    await expectAllDone(pool, all);
    await expectWrittenOnce(place, all);
    expect(await again.kill("SIGTERM")).toBe(0);

    async function crash(at: string): Promise<void> {
      const worker = await place.start({
        env: { UKEMI_CRASH_AT: at },
        ukemi: { pollMs: 100, ...(shared ? { concurrency: EVENTS } : {}) },
        shared,
        sends,
        wait: false,
      });
      await worker.ended;
      expect(worker.child.signalCode, `died at ${at}`).toBe("SIGKILL");
    }
  },
);
