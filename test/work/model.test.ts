// Any sequence of what workers, senders, operators and time can do to jobs: the database does what the model says.
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import * as acts from "../support/job-acts.ts";
import { end, type Ending } from "../support/job-endings.ts";
import { listJobs } from "../support/job-model.ts";
import { QUEUES, registerHandlers, startWorld, TASKS, type World } from "../support/job-world.ts";
import { seededRandom } from "../support/seed.ts";
import { LIMITS } from "../support/store.ts";

type Command = fc.AsyncCommand<object, World>;

/** More of them find more: UKEMI_TEST_RUNS=1000. */
const RUNS = Number(process.env.UKEMI_TEST_RUNS ?? 50);
const COMMANDS_MAX = 60;
const KEYS = [null, "k", "l", "in order"] as const;
const ENDINGS: readonly Ending[] = [
  "done",
  "done many",
  "fail",
  "fail",
  "wait",
  "wait",
  "die",
  "give back",
  "give back later",
  "extend",
  "unclaim",
];

/** The model lives in the world: what fast-check shrinks is the list of commands. */
function command(name: string, run: (world: World) => Promise<unknown>): Command {
  return {
    check: () => true,
    run: async (_, world) => void (await run(world)),
    toString: () => name,
  };
}

const worker = fc.nat({ max: 1 });
const queue = fc.constantFrom(...QUEUES);
const pick = <T>(list: readonly T[], place: number): T | undefined =>
  list[list.length - 1 - (place % list.length)];

const enqueue = fc
  .record({
    queue,
    handler: fc.constantFrom(...TASKS),
    tenant: fc.constantFrom(null, "t", "u"),
    key: fc.constantFrom(...KEYS),
    priority: fc.constantFrom(0, 0, 5),
    maxAttempts: fc.integer({ min: 1, max: 3 }),
    delayMinutes: fc.constantFrom(0, 0, 0, 1, 4),
    count: fc.constantFrom(1, 1, 2, 8),
  })
  .map(({ count, ...task }) =>
    command(`enqueue ${count} ${JSON.stringify(task)}`, (world) =>
      acts.enqueue(world, { ...task, ordered: task.key === "in order" }, count),
    ),
  );

const store = fc
  .record({
    type: fc.constantFrom("plain", "keyed", "ordered"),
    ref: fc.constantFrom("pi_1", "pi_2"),
    slots: fc.nat({ max: 2 }),
    worker,
  })
  .map((event) =>
    command(`store ${JSON.stringify(event)}`, (world) =>
      // a key is either in order or not: nothing is promised of one that is both
      acts.store(world, { ...event, ref: `${event.type} ${event.ref}` }),
    ),
  );

const claim = fc
  .record({
    queue,
    most: fc.constantFrom(1, 2, 3, 8, 9, 12),
    alone: fc.constantFrom(false, false, true),
    worker,
  })
  .map((request) => command(`claim ${JSON.stringify(request)}`, (world) => acts.claim(world, request)));

/** Ends a try whose lease was had of late, or long ago. */
const ending = fc
  .record({ how: fc.constantFrom(...ENDINGS), place: fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: 40 })) })
  .map(({ how, place }) =>
    command(`${how} ${place}`, async (world) => {
      const lease = pick(world.leases, place);
      if (lease) await end(world, lease, how);
    }),
  );

const beginAlone = fc.nat({ max: 5 }).map((place) =>
  command(`begin alone ${place}`, async (world) => {
    const lease = pick(world.leases, place);
    if (lease) await acts.beginAlone(world, lease);
  }),
);

const time = fc.constantFrom(1, 2, 5, 11).map((minutes) =>
  command(`${minutes} minutes pass`, async (world) => {
    await acts.pass(world, minutes);
    await acts.makeDue(world);
  }),
);

const lapse = fc.constantFrom(1, 11).map((minutes) =>
  command(`take over after ${minutes} minutes`, async (world) => {
    await acts.pass(world, minutes);
    await acts.takeOver(world);
  }),
);

const others = fc.oneof(
  fc.constant(command("sweep keys", acts.sweepKeys)),
  worker.map((index) => command(`stop worker ${index}`, (world) => acts.stopWorker(world, index))),
  worker.map((index) => command(`kill worker ${index}`, (world) => acts.killWorker(world, index))),
  fc
    .record({ queue, paused: fc.boolean() })
    .map(({ queue, paused }) =>
      command(`${paused ? "pause" : "resume"} ${queue}`, (world) => acts.pause(world, queue, paused)),
    ),
  fc.nat({ max: 5 }).map((place) =>
    command(`revive ${place}`, async (world) => {
      const event = pick(world.events, place);
      if (event !== undefined) await acts.revive(world, event);
    }),
  ),
);

const commands = fc.commands(
  [
    enqueue,
    enqueue,
    store,
    claim,
    claim,
    claim,
    ending,
    ending,
    ending,
    beginAlone,
    time,
    lapse,
    others,
    others,
  ],
  { maxCommands: COMMANDS_MAX, size: "max" },
);

/** Mends everything, lets every handler succeed, and demands that nothing is left. */
async function drain(world: World): Promise<void> {
  for (const name of QUEUES) await acts.pause(world, name, false);
  await acts.pass(world, 100_000);
  const unfinished = () => listJobs(world.model).filter(({ state }) => state !== "done" && state !== "dead");
  for (let round = 0; unfinished().length > 0; round += 1) {
    expect(round, `left: ${JSON.stringify(unfinished())}`).toBeLessThan(100);
    await acts.takeOver(world);
    await acts.makeDue(world);
    await acts.sweepKeys(world);
    for (const name of QUEUES) {
      for (const alone of [false, true]) {
        for (const job of await acts.claim(world, { queue: name, most: 50, alone, worker: 0 })) {
          const lease = world.leases.find((held) => held.job === job)!;
          await end(world, lease, job.recoveries % 2 === 0 ? "done" : "done many");
        }
      }
    }
  }
}

/** What a handler wrote is there once for each job that ended so, and every event has the outcome of its jobs. */
async function checkTraces({ pool, model, events }: World): Promise<void> {
  const twice = await pool.query("select job from written group by job having count(*) > 1");
  expect(twice.rows).toEqual([]);
  const strange = await pool.query(
    "select w.job from written w join ukemi.jobs j on j.id = w.job where j.state <> 'done'",
  );
  expect(strange.rows).toEqual([]);
  const { rows } = await pool.query<{ id: string; status: string }>(
    "select id, status from ukemi.webhook_events where id = any($1)",
    [events],
  );
  for (const { id, status } of rows) {
    const jobs = listJobs(model).filter(({ event }) => event === id);
    expect(status).toBe(jobs.some(({ state }) => state === "dead") ? "failed" : "success");
  }
}

test(
  "jobs go through their states as the model says, whatever happens in whatever order",
  { timeout: Math.max(180_000, RUNS * 3000) },
  async () => {
    const { url, pool } = await createDatabase();
    const { seed } = seededRandom("the job state machine");
    // what is tested is what the statements do, not that they are flushed
    await pool.query(`
    create table written (job bigint);
    do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$`);
    await registerHandlers(pool);
    const session = await connect(url, LIMITS);
    onTestFinished(() => session.end());
    let ran = 0;
    await fc.assert(
      fc.asyncProperty(commands, async (list) => {
        const world = await startWorld(pool, session);
        await fc.asyncModelRun(() => ({ model: {}, real: world }), list);
        await drain(world);
        await checkTraces(world);
        ran += world.leases.length;
      }),
      { seed, numRuns: RUNS },
    );
    expect(ran).toBeGreaterThan(RUNS);
  },
);
