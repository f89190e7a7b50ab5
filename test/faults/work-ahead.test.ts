// Promise 7: a kill counts against the jobs that had begun, not against those that were claimed ahead of them.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";
import { storeElsewhere, untilDrained } from "../support/work.ts";
import { createWorkplace, eventIds, expectWrittenOnce, recoveriesOf } from "../support/worker-process.ts";

const CONCURRENCY = 4;
const COUNT = 4000;

test.each(["SIGKILL", "SIGSTOP"] as const)(
  "a worker that ends by %s counts against those that had begun, and few others",
  async (signal) => {
    const place = await createWorkplace(await createDatabase());
    const { url, pool } = place;
    const start = () =>
      place.start({ ukemi: { concurrency: CONCURRENCY, pollMs: 50, leaseMs: 3000 }, sends: true });
    const events = eventIds(COUNT);
    await storeElsewhere(url, events);
    const worker = await start();
    const count = async (where: string) =>
      (await pool.query(`select from ukemi.jobs where ${where}`)).rowCount!;
    await until(
      async () => (await count("state = 'running'")) > 10 * CONCURRENCY,
      "jobs to be claimed ahead",
    );
    worker.child.kill(signal);
    const held = await count("state = 'running'");
    expect(held).toBeGreaterThan(3 * CONCURRENCY);

    const next = await start();
    const jobs = await untilDrained(pool, 120_000);
    if (signal === "SIGSTOP") worker.child.kill("SIGCONT");
    await worker.kill("SIGKILL");
    await next.kill("SIGTERM");
    console.log(`${held} held; jobs by recoveries: ${recoveriesOf(jobs)}`);
    const recovered = new Set(jobs.flatMap((job) => (job.recoveries > 0 ? String(job.event_id) : [])));
    // two claims of one that froze may lapse one after the other, and are counted each for itself
    const most = (signal === "SIGSTOP" ? 4 : 2) * CONCURRENCY;
    expect(recovered.size, "few that had not begun").toBeLessThanOrEqual(most);
    const begun = place.notes().flatMap(({ what, event }) => (what === "begin" ? event : []));
    const twice = begun.filter((event, index) => begun.indexOf(event) < index);
    expect(
      twice.filter((event) => !recovered.has(event)),
      "all that had begun, and began again",
    ).toEqual([]);
    expect(jobs.filter(({ state, attempt }) => state !== "done" || attempt !== 1)).toEqual([]);
    await expectWrittenOnce(place, events);
  },
);
