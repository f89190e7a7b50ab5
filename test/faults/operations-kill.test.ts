// Operations under kill -9 of the processes that run them: another goes on, and no item is done twice.
import { expect, test } from "vitest";
import { CRASH_POINTS } from "../../src/crash-point.ts";
import { createDatabase } from "../support/database.ts";
import { makeDead, MANDATE, operateOn } from "../support/dead.ts";
import { countItems, readChanges } from "../support/operations.ts";
import { seededRandom } from "../support/seed.ts";
import { until } from "../support/until.ts";
import { untilDrained } from "../support/work.ts";
import {
  createWorkplace,
  eventIds,
  expectAllDone,
  expectWrittenOnce,
  recoveriesOf,
  type Workplace,
} from "../support/worker-process.ts";

const REPLAY = { kind: "replay", name: "after the fix", all: true } as const;

async function withDead(count: number, suffix?: (index: number) => string) {
  const place = await createWorkplace(await createDatabase());
  const events = eventIds(count, suffix);
  await makeDead(place, events);
  const { operations, queues } = operateOn(place.pool);
  return { place, pool: place.pool, events, operations, queues };
}

/** Every job was replayed once, by the audit, and ran once to effect, by what its handler wrote. */
async function expectEachOnce(place: Workplace, events: readonly string[]): Promise<void> {
  const jobs = await untilDrained(place.pool, 60_000);
  console.log(`${events.length} dead letters; jobs by recoveries: ${recoveriesOf(jobs)}`);
  await expectAllDone(place.pool, events);
  await expectWrittenOnce(place, events);
  expect([...(await readChanges(place.pool)).values()]).toEqual(events.map(() => 1));
}

const PASSES = CRASH_POINTS.filter((point) => point.startsWith("operation.")).flatMap((point) =>
  [1, 2].map((pass) => ({ point, pass })),
);

test.each(PASSES)("goes on after a crash at $point, pass $pass", async ({ point, pass }) => {
  const { place, pool, events, operations } = await withDead(450);
  const { id } = await operations.create(REPLAY, MANDATE);
  const crashing = await place.start({ env: { UKEMI_CRASH_AT: `${point}:${pass}` }, wait: false });
  await crashing.ended;
  expect(crashing.child.signalCode).toBe("SIGKILL");
  // a batch is there as a whole, with its audit, or not at all
  const batches = point === "operation.after_commit" ? pass : pass - 1;
  const { waiting } = await countItems(pool, id);
  expect(450 - (waiting ?? 0)).toBe(batches * 200);
  expect((await readChanges(pool)).size).toBe(batches * 200);

  const next = await place.start();
  await until(async () => (await operations.show(id)).state === "done", "the operation to be done", 60_000);
  expect((await operations.show(id)).counts).toMatchObject({ done: 450, dead: 0 });
  await expectEachOnce(place, events);
  expect(await next.kill("SIGTERM")).toBe(0);
});

const KILLS = 15;
const WORKERS = 2;

test("survives kills, aborts and resumes at any moment", async () => {
  const random = seededRandom("operations-kill");
  const { place, events, operations } = await withDead(1500, () => `_ms${random.below(10)}`);
  const start = () => place.start({ ukemi: { concurrency: 8, pollMs: 50 } });
  const workers = Array.from({ length: WORKERS }, start);
  await Promise.all(workers);
  const { id } = await operations.create({ ...REPLAY, rate: 100, canary: true }, MANDATE);
  const waiting = async () => (await operations.show(id)).counts.waiting;
  let last = events.length;
  let busy = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const fewest = 1 + random.below(30);
    const before = last;
    await until(
      async () => (last = await waiting()) <= Math.max(0, before - fewest),
      "items to be replayed",
      60_000,
    );
    await new Promise((resolve) => setTimeout(resolve, random.below(50))); // anywhere in a batch or its commit
    if (last > 0) busy += 1;
    const victim = random.below(WORKERS);
    const halted = random.below(3) === 0;
    if (halted) {
      await operations.abort(id, MANDATE);
      last = await waiting();
    }
    await (await workers[victim]!).kill("SIGKILL");
    workers[victim] = start();
    if (!halted) continue;
    await workers[victim];
    expect(await waiting(), "an aborted operation touches nothing, whoever is born or dies").toBe(last);
    expect(await operations.resume(id, MANDATE)).toMatchObject({ changed: true });
  }
  expect(busy, "kills while items were waiting: one after the end proves nothing").toBeGreaterThan(KILLS / 2);
  await until(async () => (await operations.show(id)).state === "done", "the operation to be done", 90_000);
  expect((await operations.show(id)).counts).toMatchObject({ done: events.length, dead: 0, skipped: 0 });
  await expectEachOnce(place, events);
  for (const worker of await Promise.all(workers)) expect(await worker.kill("SIGTERM")).toBe(0);
});

test("one that was aborted while every process was dead stays so until it is resumed", async () => {
  const { place, pool, events, operations } = await withDead(60);
  const first = await place.start();
  const { id } = await operations.create({ ...REPLAY, rate: 5 }, MANDATE);
  await until(async () => (await operations.show(id)).counts.done >= 2, "two to be done");
  await first.kill("SIGKILL");
  await operations.abort(id, MANDATE);
  const { counts } = await operations.show(id);
  expect(counts.waiting).toBeGreaterThan(0);
  const second = await place.start();
  await until(
    async () => (await operations.show(id)).counts.replayed === 0,
    "what was at work to be noticed",
  );
  expect(await operations.show(id)).toMatchObject({ state: "aborted", counts: { waiting: counts.waiting } });
  expect((await readChanges(pool)).size).toBe(60 - counts.waiting);
  await operations.resume(id, MANDATE);
  await until(async () => (await operations.show(id)).state === "done", "the operation to be done", 60_000);
  await expectEachOnce(place, events);
  expect(await second.kill("SIGTERM")).toBe(0);
});
