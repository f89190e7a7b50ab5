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
  type WorkerProcess,
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
  const workers: WorkerProcess[] = await Promise.all(Array.from({ length: WORKERS }, start));
  const starting: Promise<unknown>[] = [];
  const replace = async (index: number) => void (workers[index] = await start());
  const begun = () => place.notes().filter(({ what }) => what === "begin").length;

  /** One in which a handler runs, where there is one: a kill that cuts none proves nothing. */
  function pickVictim(): number {
    const open = new Map<number, number>();
    for (const { what, pid } of place.notes()) {
      if (what === "begin") open.set(pid, (open.get(pid) ?? 0) + 1);
      if (what === "end") open.set(pid, open.get(pid)! - 1);
    }
    const alive = workers.flatMap(({ child }, index) => (child.signalCode === null ? index : []));
    const busy = alive.filter((index) => open.get(workers[index]!.pid));
    const eligible = busy.length > 0 ? busy : alive;
    return eligible[random.below(eligible.length)]!;
  }

  for (let cycle = 0; cycle < cycles; cycle++) {
    const before = begun();
    await storeElsewhere(url, all.slice(cycle * EVENTS_PER_CYCLE, (cycle + 1) * EVENTS_PER_CYCLE));
    const fewest = 1 + random.below(EVENTS_PER_CYCLE - 1);
    await until(() => begun() >= before + fewest, `${fewest} more handlers to begin`);
    await new Promise((resolve) => setTimeout(resolve, random.below(30))); // anywhere in a handler or its commit
    const victim = pickVictim();
    await workers[victim]!.kill("SIGKILL");
    starting.push(replace(victim)); // the others go on meanwhile
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
  expect(count("begin") - count("end"), "handlers that a kill cut").toBeGreaterThan(cycles / 2);
  expect(count("wrote"), "some were cut after they had written").toBeGreaterThan(all.length);
  await expectAllDone(pool, all);
  await expectWrittenOnce(place, all);
  await Promise.all(starting);
  for (const worker of workers) expect(await worker.kill("SIGTERM")).toBe(0);
});
