// Two processes that send to one destination keep to its limits together: judged by the log of the server they send to.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { expect, test } from "vitest";
import type { UkemiOptions } from "../../src/ukemi.ts";
import { startEffectWorld, type EffectWorld } from "../support/effect-world.ts";
import { RECEIPT } from "../support/mail-world.ts";
import { seededRandom } from "../support/seed.ts";
import type { InboxAct, InboxStep } from "../support/smtp-inbox.ts";
import { until } from "../support/until.ts";
import { untilDrained } from "../support/work.ts";

/** A turn may be used a little late: where only the gap is asked for, the first of a second is so much closer to the last. */
const LATE_MS = 35;

/** What the server noted of each mail: when it began, and how many it had in its hands then. */
interface Log {
  readonly starts: readonly number[];
  readonly atOnce: readonly number[];
  onStep(step: InboxStep): InboxAct | undefined;
}

/** A server that takes a while to answer, longer for one mail than for another. */
function createLog(slowMs: number): Log {
  const random = seededRandom(`a server that takes up to ${slowMs} ms`);
  const starts: number[] = [];
  const atOnce: number[] = [];
  const inHands = new Set<number>();
  return {
    starts,
    atOnce,
    onStep({ at, connection }) {
      if (at === "mail") {
        starts.push(performance.now());
        inHands.add(connection);
        atOnce.push(inHands.size);
      }
      if (at !== "end") return undefined;
      return { afterMs: random.below(slowMs), onAnswer: () => void inHands.delete(connection) };
    },
  };
}

/** So many mails, and two processes that send them. */
async function startTwo(log: Log, app: Partial<UkemiOptions>, mails: number) {
  const world = await startEffectWorld({ inbox: { onStep: log.onStep }, app });
  for (let n = 0; n < mails; n += 1) {
    const mail = { to: `p${n}@example.net`, data: RECEIPT, dedupe: `${n}` };
    await world.ukemi.effects.email(null, "receipt", mail);
  }
  const processes = [world.start(), world.start()];
  return { ...world, stop: () => Promise.all(processes.map((one) => one.stop())) };
}

/** Every mail has arrived once by its effect's id, at the first call, and both processes have sent some of them. */
async function expectOnceBy(world: Pick<EffectWorld, "pool" | "inbox">, mails: number): Promise<void> {
  const { rows } = await world.pool.query<{ id: string; state: string; worker: string }>(
    "select e.id, e.state, a.worker from ukemi.effects e join ukemi.effect_attempts a on a.effect = e.id",
  );
  expect(rows).toHaveLength(mails);
  expect(new Set(rows.map(({ state }) => state))).toEqual(new Set(["done"]));
  const arrived = world.inbox.mails.map(({ headers }) => headers["x-ukemi-effect"] ?? "");
  expect(arrived.toSorted()).toEqual(rows.map(({ id }) => id).toSorted());
  const workers = [...new Set(rows.map(({ worker }) => worker))];
  const shares = workers.map((each) => rows.filter(({ worker }) => worker === each).length);
  console.log(`sent by each: ${shares.join(", ")}`);
  expect(workers, "both have sent").toHaveLength(2);
}

/** The most that began within so many milliseconds. */
function busiest(starts: readonly number[], withinMs: number): number {
  return Math.max(...starts.map((from) => starts.filter((at) => at >= from && at < from + withinMs).length));
}

test.each([
  ["8 a second", { mailPerSecond: 8, mailGapMs: 0 }, { most: 8, lateMs: 0 }],
  ["1/8 s between two", { mailPerSecond: 1000, mailGapMs: 125 }, { most: 8, lateMs: LATE_MS }],
])("two processes together never exceed the rate of a destination: %s", async (_, app, { most, lateMs }) => {
  // so few that a slow machine reaches them, and would exceed them
  const mails = 6 * most;
  const log = createLog(20);
  const world = await startTwo(log, { ...app, mailConcurrency: 10 }, mails);
  const blind = monitorEventLoopDelay({ resolution: 5 });
  blind.enable();
  await untilDrained(world.pool, 120_000);
  blind.disable();
  await expectOnceBy(world, mails);
  expect(log.starts).toHaveLength(mails);
  // what came while the server did not look was noted when it looked again
  const withinMs = Math.floor(1000 - blind.max / 1e6 - lateMs);
  const seen = busiest(log.starts, withinMs);
  console.log(`${seen} in ${withinMs} ms, ${busiest(log.starts, 1000)} in a second`);
  expect(seen).toBeLessThanOrEqual(most);
  expect(seen, "as many as would show it").toBeGreaterThan(most / 3);
  await world.stop();
});

test("two processes together never have more mails under way than a destination allows", async () => {
  const [concurrency, mails] = [3, 80];
  const log = createLog(200);
  const app = { mailPerSecond: 1000, mailGapMs: 0, mailConcurrency: concurrency };
  const world = await startTwo(log, app, mails);
  await untilDrained(world.pool, 120_000);
  await expectOnceBy(world, mails);
  expect(Math.max(...log.atOnce)).toBe(concurrency);
  await world.stop();
});

test("two processes together stop at the limit of a day, and go on when it is over", async () => {
  const [perDay, mails] = [12, 20];
  const log = createLog(20);
  const world = await startTwo(log, { mailPerDay: perDay }, mails);
  const waiting = async () =>
    (await world.pool.query("select from ukemi.jobs where state = 'scheduled'")).rowCount;
  await until(async () => (await waiting()) === mails - perDay, "the others to wait for the next day");
  await until(() => world.inbox.mails.length >= perDay, "the first day's mails");
  expect(log.starts).toHaveLength(perDay);
  await world.pool.query("update ukemi.clock set shift = '26 hours'");
  await untilDrained(world.pool, 60_000);
  await expectOnceBy(world, mails);
  await world.stop();
});
