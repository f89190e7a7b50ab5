// Promise 2 under kill -9 of workers: what a handler writes through its transaction happens exactly once.
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

const EVENTS_PER_CYCLE = 24;
const WORKERS = 3;

test.each([
  { cycles: 50, what: "its own commit", shared: false, sends: false, concurrency: 4 },
  { cycles: 10, what: "its own commit, in one trip", shared: false, sends: true, concurrency: 4 },
  { cycles: 10, what: "a shared commit", shared: true, sends: false, concurrency: EVENTS_PER_CYCLE },
  {
    cycles: 10,
    what: "a shared commit, in one trip",
    shared: true,
    sends: true,
    concurrency: EVENTS_PER_CYCLE,
  },
])("runs every job exactly once to effect through $cycles kills of workers, with $what", async (one) => {
  const { cycles, shared, sends, concurrency } = one;
  const random = seededRandom("work-kill");
  const place = await createWorkplace(await createDatabase());
  const { url, pool } = place;
  const all = eventIds(cycles * EVENTS_PER_CYCLE, () => `_ms${2 + random.below(20)}`);
  const start = () => place.start({ ukemi: { concurrency, pollMs: 50 }, shared, sends });
  const workers = Array.from({ length: WORKERS }, start);
  await Promise.all(workers);
  const begun = () => place.notes().filter(({ what }) => what === "begin").length;

  for (let cycle = 0; cycle < cycles; cycle++) {
    const before = begun();
    await storeElsewhere(url, all.slice(cycle * EVENTS_PER_CYCLE, (cycle + 1) * EVENTS_PER_CYCLE));
    const fewest = 1 + random.below(EVENTS_PER_CYCLE - 1);
    await until(() => begun() >= before + fewest, `${fewest} more handlers to begin`);
    await new Promise((resolve) => setTimeout(resolve, random.below(30))); // anywhere in a handler or its commit
    const victim = random.below(WORKERS);
    await (await workers[victim]!).kill("SIGKILL");
    workers[victim] = start(); // the others go on meanwhile
    // a kill hits all that share: whoever is hit again and again, while it runs alone, would be taken for the cause
    if (shared) await untilDrained(pool, 60_000);
  }

  const jobs = await untilDrained(pool, 60_000);
  const notes = place.notes();
  const count = (wanted: string) => notes.filter(({ what }) => what === wanted).length;
  console.log(
    `${all.length} events, ${count("begin")} runs begun, ${count("wrote")} wrote, ${count("end")} ended; ` +
      `jobs by recoveries: ${recoveriesOf(jobs)}`,
  );
  expect(
    count("begin") - count("end"),
    "handlers that a kill cut: one that cuts none proves nothing",
  ).toBeGreaterThan(cycles / 2);
  expect(count("wrote"), "some were cut after they had written").toBeGreaterThan(all.length);
  await expectAllDone(pool, all);
  await expectWrittenOnce(place, all);
  for (const worker of await Promise.all(workers)) expect(await worker.kill("SIGTERM")).toBe(0);
});
