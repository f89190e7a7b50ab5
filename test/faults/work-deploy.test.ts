// Promise 7: a deploy is no crash. Workers are ended by SIGTERM, again and again, and no job has to pay for it.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { seededRandom } from "../support/seed.ts";
import { until } from "../support/until.ts";
import { storeElsewhere, untilDrained } from "../support/work.ts";
import {
  createWorkplace,
  eventIds,
  expectAllDone,
  expectWrittenOnce,
  recoveriesOf,
} from "../support/worker-process.ts";

const DEPLOYING_MS = 60_000;
const INTERVAL_MS = 1000;
const EVENTS_PER_STEP = 2;
const STEP_MS = 100;

test("burns no attempt and loses nothing through a minute of rolling restarts, one each second", async () => {
  const random = seededRandom("work-deploy");
  const place = await createWorkplace(await createDatabase());
  const { url, pool } = place;
  const start = () => place.start({ ukemi: { pollMs: 100 } });
  const workers = await Promise.all([start(), start()]);

  const all: string[] = [];
  const deployed = new AbortController();
  const streaming = (async () => {
    while (!deployed.signal.aborted) {
      const some = eventIds(EVENTS_PER_STEP, () => `_ms${50 + random.below(351)}`, all.length);
      await storeElsewhere(url, some);
      all.push(...some);
      await pause(STEP_MS);
    }
  })();
  const codes: (number | null)[] = [];
  const endsAt = performance.now() + DEPLOYING_MS;
  for (let deploy = 0; performance.now() < endsAt; deploy++) {
    const next = pause(INTERVAL_MS);
    const [code, replacement] = await Promise.all([workers[deploy % 2]!.kill("SIGTERM"), start()]);
    codes.push(code);
    workers[deploy % 2] = replacement;
    await next;
  }
  deployed.abort();
  await streaming;

  const jobs = await untilDrained(pool);
  const begun = place.notes().filter(({ what }) => what === "begin").length;
  const given = await pool.query("select from ukemi.attempts where outcome = 'returned'");
  console.log(
    `${codes.length} deploys, ${all.length} events, ${begun} runs begun, ${given.rowCount} jobs given back; ` +
      `jobs by recoveries: ${recoveriesOf(jobs)}`,
  );
  expect(new Set(codes), "every worker ends in order").toEqual(new Set([0]));
  await expectAllDone(pool, all);
  await expectWrittenOnce(place, all);
  expect(recoveriesOf(jobs), "a deploy is no crash").toBe(`0: ${all.length}`);
  expect(begun, "handlers are waited for").toBe(all.length);
});

test("gives back a handler that takes longer than a stop may wait, and it runs elsewhere", async () => {
  const place = await createWorkplace(await createDatabase());
  const { url, pool } = place;
  const held = eventIds(3, () => "_held");
  const leaving = await place.start({ ukemi: { drainTimeoutMs: 300 }, gate: true });
  await storeElsewhere(url, held);
  await until(
    () => place.notes().filter(({ what }) => what === "wrote").length === held.length,
    "the handlers to have written",
  );
  const staying = await place.start();

  expect(await leaving.kill("SIGTERM")).toBe(0);
  const jobs = await untilDrained(pool);
  const ends = place.notes().filter(({ what }) => what === "end");
  expect(ends.map(({ pid }) => pid)).toEqual(held.map(() => staying.pid));
  await expectAllDone(pool, held);
  await expectWrittenOnce(place, held);
  expect(recoveriesOf(jobs)).toBe("0: 3");
  const { rows } = await pool.query("select number, outcome, error_class from ukemi.attempts");
  expect(rows).toEqual(held.map(() => ({ number: 1, outcome: "returned", error_class: "Returned" })));
  expect(await staying.kill("SIGTERM")).toBe(0);
});

/** The pace of the deploys and of the stream; nothing is judged by it. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
