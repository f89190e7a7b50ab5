// A crash exactly here: at every named place of the work the process dies with SIGKILL, and the next one mends it.
import { expect, test } from "vitest";
import { CRASH_POINTS } from "../../src/crash-point.ts";
import { createDatabase } from "../support/database.ts";
import { readJobs, storeElsewhere, untilDrained } from "../support/work.ts";
import {
  createWorkplace,
  eventIds,
  expectAllDone,
  expectWrittenOnce,
  recoveriesOf,
} from "../support/worker-process.ts";

const EVENTS = 12;

const PASSES = CRASH_POINTS.filter((point) => point.startsWith("work.")).flatMap((point) =>
  // the first pass, and where it leaves something else behind, a later one: something has been settled already
  (point === "work.claimed" || point === "work.before_settle" ? [1] : [1, 5]).map((pass) => ({
    point,
    pass,
  })),
);

test.each(PASSES)("converges after a crash at $point, pass $pass", async ({ point, pass }) => {
  const place = await createWorkplace(await createDatabase());
  const { url, pool } = place;
  const all = eventIds(EVENTS, () => "_ms10");
  await storeElsewhere(url, all);
  // alone runs only what was running in a process that died: that has to happen first
  if (point === "work.alone") await crash("work.claimed:6");
  await crash(`${point}:${pass}`);
  const { rows } = await pool.query<{ written: number }>("select count(*)::int as written from written");
  const done = (await readJobs(pool)).filter((job) => job.state === "done");
  expect(done, "what is written and what is done are one commit").toHaveLength(rows[0]!.written);
  if (point === "work.after_commit") expect(done.length).toBeGreaterThanOrEqual(pass);
  if (point === "work.before_commit" && pass === 1) expect(done).toEqual([]);

  const again = await place.start();
  const jobs = await untilDrained(pool);
  const begun = place.notes().filter(({ what }) => what === "begin").length;
  console.log(`${done.length} done before, ${begun} runs begun; jobs by recoveries: ${recoveriesOf(jobs)}`);
  await expectAllDone(pool, all);
  await expectWrittenOnce(place, all);
  expect(await again.kill("SIGTERM")).toBe(0);

  async function crash(at: string): Promise<void> {
    const worker = await place.start({ env: { UKEMI_CRASH_AT: at }, ukemi: { pollMs: 100 }, wait: false });
    await worker.ended;
    expect(worker.child.signalCode, `died at ${at}`).toBe("SIGKILL");
  }
});
