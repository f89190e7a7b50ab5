// Promise 7: a handler that takes its process with it ends dead, and the 49 jobs beside it do not suffer.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { seededRandom } from "../support/seed.ts";
import { readJobs, storeElsewhere, untilDrained } from "../support/work.ts";
import {
  createWorkplace,
  eventIds,
  expectWrittenOnce,
  recoveriesOf,
  type Workplace,
} from "../support/worker-process.ts";

const JOBS = 50;
const DEATHS_MAX = 20;

/** Starts workers again as often as they die, as a supervisor does. Returns how often they died when it is ended. */
function supervise(place: Workplace, count: number): { end(): Promise<number> } {
  const over = new AbortController();
  const isOver = new Promise<void>((resolve) => over.signal.addEventListener("abort", () => resolve()));
  let deaths = 0;
  const lives = Array.from({ length: count }, async () => {
    while (!over.signal.aborted && deaths < DEATHS_MAX) {
      const worker = await place.start({ wait: false });
      await Promise.race([worker.ended, isOver]);
      await worker.kill("SIGTERM"); // without effect on one that is dead
      if (worker.child.signalCode === "SIGKILL") deaths += 1;
    }
  });
  return {
    async end() {
      over.abort();
      await Promise.all(lives);
      return deaths;
    },
  };
}

test.each([1, 2])(
  "buries only the poison of 50 jobs, with %i workers that are started again",
  async (count) => {
    const random = seededRandom("work-poison");
    const place = await createWorkplace(await createDatabase());
    const { url, pool } = place;
    const poisoned = random.below(JOBS);
    const all = eventIds(JOBS, (index) =>
      index === poisoned ? "_ms20_crash" : `_ms${5 + random.below(60)}`,
    );
    const good = all.filter((_, index) => index !== poisoned);
    await storeElsewhere(url, all);

    const supervisor = supervise(place, count);
    await untilDrained(pool, 60_000);
    const deaths = await supervisor.end();
    const jobs = await readJobs(pool);
    console.log(`${deaths} crashes; jobs by recoveries: ${recoveriesOf(jobs)}`);
    const other = jobs.filter((job) => job.state !== "done" || job.attempt !== 1);
    expect(other).toMatchObject([
      { event_id: all[poisoned], state: "dead", death: "crashed", attempt: 0, error_class: "WorkerLost" },
    ]);
    expect(deaths, "once among others, three times alone").toBe(4);
    expect(other[0]!.recoveries).toBe(4);
    const innocent = jobs.filter((job) => job.event_id !== all[poisoned]);
    expect(
      Math.max(...innocent.map((job) => job.recoveries)),
      "its neighbours die once with it",
    ).toBeLessThan(2);
    await expectWrittenOnce(place, good);
  },
);
