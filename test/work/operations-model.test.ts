// Any sequence of what processes, operators, handlers and time can do to operations: each death is answered once at the most.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Operate } from "../../src/operate/operate.ts";
import type { ListedOperation } from "../../src/storage/operations.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { makeDead, MANDATE, operateOn, register, removeBodies } from "../support/dead.ts";
import { endJobs, pass, stepNow } from "../support/operations.ts";
import { seededRandom } from "../support/seed.ts";
import { readJobs } from "../support/work.ts";

/** More of them find more: UKEMI_TEST_RUNS=200. */
const RUNS = Number(process.env.UKEMI_TEST_RUNS ?? 12);
const EVENTS = Array.from({ length: 26 }, (_, i) => `evt_${String(i).padStart(2, "0")}`);

const some = fc.integer({ min: 0, max: EVENTS.length - 1 });
const ACTS = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ act: fc.constant("step" as const), processes: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ act: fc.constant("pass" as const), ms: fc.integer({ min: 1, max: 3000 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      act: fc.constant("end" as const),
      most: fc.integer({ min: 1, max: 12 }),
      dying: fc.array(some, { maxLength: 6 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant("create" as const),
      kind: fc.constantFrom("replay" as const, "replay" as const, "drop" as const),
      canary: fc.boolean(),
      rate: fc.constantFrom(undefined, 1, 20),
      failureLimit: fc.constantFrom(undefined, 0, 0.5, 1),
      from: some,
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("abort" as const), which: fc.nat(9) }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant("resume" as const), which: fc.nat(9) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      act: fc.constant("by hand" as const),
      kind: fc.constantFrom("replay" as const, "drop" as const),
      which: some,
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("lose body" as const), which: some }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("forget" as const), which: some }) },
);
type Act = typeof ACTS extends fc.Arbitrary<infer T> ? T : never;

interface World extends Pick<Operate, "dead" | "operations"> {
  readonly pool: Pool;
  readonly ids: ReadonlyMap<string, number>;
  /** The operations made so far. */
  readonly made: string[];
  /** How often each job's handler has run since the beginning, by the test's own count. */
  readonly runs: Map<number, number>;
  /** The items of every operation as they were after the last act. */
  before: ReadonlyMap<string, string>;
  /** The state of every operation after the last act. */
  states: ReadonlyMap<string, string>;
}

async function doAct(world: World, given: Act): Promise<void> {
  const { pool, dead, operations, ids, made } = world;
  switch (given.act) {
    case "step":
      await Promise.all(Array.from({ length: given.processes }, () => stepNow(pool, [], 2)));
      return;
    case "pass":
      return pass(pool, given.ms);
    case "end":
      return runHandlers(
        world,
        given.most,
        given.dying.map((index) => EVENTS[index]!),
      );
    case "create": {
      const { kind, rate, from } = given;
      const careful = kind === "drop" ? {} : { canary: given.canary, failureLimit: given.failureLimit };
      const chosen = { ids: [...ids.values()].slice(from) };
      const request = { kind, rate, ...careful, name: "any", ...chosen };
      // where all of them wait in another operation there is nothing to do
      const operation = await operations.create(request, MANDATE).catch(() => undefined);
      if (operation) made.push(operation.id);
      return;
    }
    case "abort":
    case "resume": {
      const id = made[given.which % Math.max(1, made.length)];
      if (id !== undefined) await operations[given.act](id, MANDATE);
      return;
    }
    case "by hand":
      await dead[given.kind]({ ids: [ids.get(EVENTS[given.which]!)!] }, MANDATE);
      return;
    case "lose body":
      return removeBodies(pool, [EVENTS[given.which]!]);
    case "forget":
      // retention takes only what has ended well or was given up
      await pool.query("delete from ukemi.jobs where id = $1 and state in ('done', 'cancelled')", [
        ids.get(EVENTS[given.which]!),
      ]);
      return;
    default:
      given satisfies never;
  }
}

async function runHandlers(
  { pool, runs }: World,
  most?: number,
  dying: readonly string[] = [],
): Promise<void> {
  const ready = (await readJobs(pool)).filter((job) => job.state === "ready").slice(0, most);
  await endJobs(pool, dying, ready.length);
  for (const { id } of ready) runs.set(Number(id), (runs.get(Number(id)) ?? 0) + 1);
}

async function readAll({ operations }: World): Promise<readonly ListedOperation[]> {
  return (await operations.list({ limit: 200 })).items;
}

/** What must hold at any moment. */
async function check(world: World): Promise<void> {
  const { pool } = world;
  const { rows } = await pool.query<{ operation: string; position: number; job: string; state: string }>(
    "select operation, position, job, state from ukemi.operation_items order by operation, position",
  );
  const items = new Map(rows.map((row) => [`${row.operation} ${row.position}`, row.state]));
  const all = await readAll(world);
  for (const { id, state, counts, total } of all) {
    const mine = rows.filter((row) => row.operation === id);
    expect(mine).toHaveLength(total);
    for (const [name, count] of Object.entries(counts)) {
      expect(mine.filter((row) => row.state === name)).toHaveLength(count);
    }
    if (world.states.get(id) !== state || state === "running") continue;
    // one that does not run touches nothing
    const touched = mine.filter(
      (row) => row.state !== "waiting" && world.before.get(`${id} ${row.position}`) === "waiting",
    );
    expect(touched, `touched while ${state}`).toEqual([]);
  }
  for (const [item, state] of world.before) {
    if (state === "waiting") continue;
    if (state === "replayed") expect(["replayed", "done", "dead", "gone"]).toContain(items.get(item));
    else expect(items.get(item), "what has ended stays as it is").toBe(state);
  }
  world.before = items;
  world.states = new Map(all.map(({ id, state }) => [id, state]));

  const twice = await pool.query(
    `select target, details ->> 'operation' as operation, count(*)
     from ukemi.audit_log
     where action in ('job.replayed', 'job.dropped') and details ? 'operation'
     group by 1, 2
     having count(*) > 1`,
  );
  expect(twice.rows, "changed twice by one operation").toEqual([]);
}

test("whatever happens, an operation does each of its items once at the most, and ends", async () => {
  const { seed } = seededRandom("operations-model");
  await fc.assert(
    fc.asyncProperty(fc.array(ACTS, { minLength: 5, maxLength: 40, size: "max" }), async (acts) => {
      const store = await createDatabase();
      await register(store.pool);
      const ids = await makeDead(store, EVENTS);
      const { dead, operations } = operateOn(store.pool);
      const world: World = {
        pool: store.pool,
        dead,
        operations,
        ids,
        made: [],
        runs: new Map(),
        before: new Map(),
        states: new Map(),
      };
      for (const given of acts) {
        await doAct(world, given);
        await check(world);
      }
      // all is well again: whatever was held up goes on, and ends
      for (let round = 0; (await readAll(world)).some(({ state }) => state !== "done"); round++) {
        expect(round, "rounds until every operation is done").toBeLessThan(150);
        for (const { id, state } of await readAll(world))
          if (state !== "running") await operations.resume(id, MANDATE);
        await pass(store.pool, 2001);
        await stepNow(store.pool);
        await runHandlers(world);
        await check(world);
      }
      await runHandlers(world);
      const { rows } = await store.pool.query<{ target: string; count: number }>(
        "select target, count(*)::int as count from ukemi.audit_log where action = 'job.replayed' group by 1",
      );
      const replays = Object.fromEntries(rows.map((row) => [row.target, row.count]));
      expect(Object.fromEntries(world.runs), "each replay is one run, and each run a replay").toEqual(
        replays,
      );
    }),
    { numRuns: RUNS, seed },
  );
}, 300_000);
