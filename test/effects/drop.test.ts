// Dropping the dead letter of an effect: what never went out is cancelled, and what nobody knows is left to a person.
import type { ServerResponse } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { connect } from "../../src/storage/postgres.ts";
import { dropJobs, readMoment } from "../../src/storage/replay.ts";
import { MANDATE, operateOn, readAudit } from "../support/dead.ts";
import { answerWith, startLedger } from "../support/ledger.ts";
import { LIMITS } from "../support/store.ts";
import { until } from "../support/until.ts";
import { untilDrained } from "../support/work.ts";

/** As a crash, or a wait that was too long, leaves the job. */
const DIES = "update ukemi.jobs set state = 'dead', death = 'crashed', finished_at = ukemi.now()";

interface Details {
  readonly dedupe: string;
  readonly before: string;
  readonly after: string;
}

async function start(status = 200) {
  const world = await startLedger((response) => answerWith(response, status));
  const client = createClient({ url: world.url });
  const { ukemi, peer } = world;
  const plan = (dedupe: string, after?: string) =>
    ukemi.effects.http(null, { url: peer.url, dedupe, ...(after !== undefined && { after }) });
  /** An effect, and two behind it. */
  const planThree = async () => {
    const { id: first } = await plan("1");
    const { id: second } = await plan("2", first);
    return { first, second, third: (await plan("3", second)).id };
  };
  // by key: ids of one millisecond have no order
  const byKey = <T extends { readonly dedupe: string }>(rows: readonly T[]) =>
    rows.toSorted((one, other) => one.dedupe.localeCompare(other.dedupe));
  const states = async () =>
    byKey((await client.listEffects()).items).map(({ state, waits_for }) => [state, waits_for]);
  const drop = () => client.dropDead({ all: true, reason: "not wanted any more" });
  const acts = async () =>
    byKey(
      (await readAudit(world.pool))
        .filter(({ action }) => String(action).startsWith("effect."))
        .map(({ action, target, details }) => ({ action, target, ...(details as Details) })),
    ).map(({ action, target, before, after }) => [action, target, before, after]);
  return { ...world, client, plan, planThree, states, drop, acts };
}

test("one that was never sent is cancelled, with all that wait for it, and stays so", async () => {
  const { pool, client, planThree, states, drop, acts, plan, ukemi, peer } = await start();
  const { first, second, third } = await planThree();
  await pool.query(DIES);
  expect(await drop()).toMatchObject({ changed: 1, skipped: 0 });
  expect(await states()).toEqual([
    ["cancelled", null],
    ["cancelled", null],
    ["cancelled", null],
  ]);
  expect(await acts()).toEqual([
    ["effect.cancelled", first, "planned", "cancelled"],
    ["effect.cancelled", second, "planned", "cancelled"],
    ["effect.cancelled", third, "planned", "cancelled"],
  ]);
  expect(await client.getEffect({ id: first })).toMatchObject({
    reason: "its job was dropped by an operator: not wanted any more",
    acts: [{ action: "effect.cancelled", actor: "api:local", reason: "not wanted any more" }],
  });
  expect((await plan("1")).suppressed).toBe(true);
  await ukemi.work();
  await untilDrained(pool);
  expect(peer.seen).toEqual([]);
});

test("one that waited too long and never went out is cancelled", async () => {
  const { pool, plan, states, drop, acts } = await start();
  const { id } = await plan("1");
  await pool.query(DIES);
  await pool.query("update ukemi.effects set state = 'failed', ended_at = ukemi.now(), reason = 'waits'");
  await drop();
  expect(await states()).toEqual([["cancelled", null]]);
  expect(await acts()).toEqual([["effect.cancelled", id, "failed", "cancelled"]]);
});

test("one that the peer refused stays failed, and what waits for it is cancelled", async () => {
  const { pool, client, planThree, states, drop, acts, ukemi, plan } = await start(400);
  await ukemi.work();
  const { first, second, third } = await planThree();
  await untilDrained(pool);
  const { reason } = await client.getEffect({ id: first });
  expect((await states()).map(([state]) => state)).toEqual(["failed", "planned", "planned"]);
  await drop();
  expect((await states()).map(([state]) => state)).toEqual(["failed", "cancelled", "cancelled"]);
  expect((await client.getEffect({ id: first })).reason).toBe(reason);
  expect(await acts()).toEqual([
    ["effect.dropped", first, "failed", "failed"],
    ["effect.cancelled", second, "planned", "cancelled"],
    ["effect.cancelled", third, "planned", "cancelled"],
  ]);
  // whoever comes later is told at once
  const late = await plan("late", first);
  expect(await client.getEffect({ id: late.id })).toMatchObject({
    state: "cancelled",
    reason: "what it should come after has failed for good",
  });
});

test.each(["sending", "uncertain"])(
  "one that may have been heard (%s) is held, never given up",
  async (state) => {
    const { pool, client, planThree, states, drop, acts } = await start();
    const { first, second } = await planThree();
    await pool.query(DIES);
    await pool.query(
      "update ukemi.effects set state = $2, attempt = 1, uncertainties = case when $2 = 'uncertain' then 1 else 0 end where id = $1",
      [first, state],
    );
    await pool.query(
      "insert into ukemi.effect_attempts (effect, number, started_at, result) values ($1, 1, ukemi.now(), $2)",
      [first, state === "uncertain" ? state : null],
    );
    await drop();
    expect((await states()).map(([now]) => now)).toEqual(["held", "planned", "planned"]);
    expect(await acts()).toEqual([["effect.held", first, state, "held"]]);
    expect(await client.getEffect({ id: first })).toMatchObject({
      uncertainties: 1,
      attempts: [{ result: "uncertain" }],
    });
    await client.resolveEffect({ id: first, as: "failed", reason: "they never had it" });
    expect((await states()).map(([now]) => now)).toEqual(["failed", "cancelled", "cancelled"]);
    expect(await client.getEffect({ id: second })).toMatchObject({
      reason: "what it waited for was given up: they never had it",
    });
  },
);

test.each([
  ["planned", "crashed", "held"],
  ["failed", "exhausted", "held"],
  ["failed", "terminal", "failed"],
])(
  "one that may have been heard, and is %s with its job's death as %s, becomes %s",
  async (state, death, after) => {
    const { pool, plan, states, drop, acts } = await start();
    const { id } = await plan("1");
    await pool.query(DIES);
    await pool.query("update ukemi.jobs set death = $1", [death]);
    await pool.query(
      "update ukemi.effects set state = $1, attempt = 2, uncertainties = 1, ended_at = case when $1 = 'failed' then ukemi.now() end",
      [state],
    );
    await drop();
    expect(await states()).toEqual([[after, null]]);
    expect(await acts()).toEqual([
      [after === state ? "effect.dropped" : `effect.${after}`, id, state, after],
    ]);
    const { rows } = await pool.query("select ended_at is null as open from ukemi.effects");
    expect(rows).toEqual([{ open: after === "held" }]);
  },
);

test("one that is held stays held", async () => {
  const { pool, plan, states, drop, acts } = await start();
  const { id } = await plan("1");
  await pool.query(DIES);
  await pool.query("update ukemi.effects set state = 'held', attempt = 1, uncertainties = 1");
  await drop();
  expect(await states()).toEqual([["held", null]]);
  expect(await acts()).toEqual([["effect.dropped", id, "held", "held"]]);
});

test("one that was done before its job died stays done, and its followers go on", async () => {
  const { pool, planThree, drop, acts } = await start();
  const { first } = await planThree();
  await pool.query(DIES);
  await pool.query("update ukemi.effects set state = 'done', ended_at = ukemi.now() where id = $1", [first]);
  await drop();
  const { rows } = await pool.query<{ state: string }>("select state from ukemi.effects order by dedupe_key");
  expect(rows.map(({ state }) => state)).toEqual(["done", "planned", "planned"]);
  expect(await acts()).toEqual([]);
});

test("a tenant's operator gives up nothing of another's", async () => {
  const { pool, ukemi, peer, states } = await start();
  await ukemi.effects.http(null, { url: peer.url, dedupe: "1", tenant: "other" });
  await pool.query(DIES);
  const { rows } = await pool.query<{ id: string }>("select id from ukemi.jobs");
  const selection = { ids: rows.map(({ id }) => Number(id)) };
  const result = await operateOn(pool).dead.drop(selection, MANDATE, { tenants: ["mine"] });
  expect(result).toMatchObject({ changed: 0, skips: [{ reason: "unknown" }] });
  expect((await states()).map(([state]) => state)).toEqual(["planned"]);
});

test("where it cannot be audited nothing is dropped", async () => {
  const { pool, planThree, states } = await start();
  await planThree();
  await pool.query(DIES);
  await pool.query(
    "alter table ukemi.audit_log add constraint no_effects check (action not like 'effect.%') not valid",
  );
  await expect(operateOn(pool).dead.drop({ all: true }, MANDATE)).rejects.toThrow("no_effects");
  expect((await states()).map(([state]) => state)).toEqual(["planned", "planned", "planned"]);
  expect((await pool.query("select state from ukemi.jobs")).rows).toEqual([{ state: "dead" }]);
});

test("one that is planned behind it while it is being dropped is cancelled too", async () => {
  const { pool, store, client, plan, ukemi } = await start(400);
  await ukemi.work();
  const { id: first } = await plan("1");
  const [job] = await untilDrained(pool);
  const operator = await connect(store.url, LIMITS);
  onTestFinished(() => operator.end());
  await operator.query("begin");
  const momentUs = await readMoment(operator);
  await dropJobs(operator, { ids: [job!.id], momentUs, ...MANDATE });
  const planning = plan("2", first);
  const isWaiting =
    "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
  await until(async () => (await pool.query(isWaiting)).rowCount === 1, "the intent to wait");
  await operator.query("commit");
  expect(await client.getEffect({ id: (await planning).id })).toMatchObject({ state: "cancelled" });
});

test.each([
  ["was not carried out", 0, 503, ["cancelled", "cancelled"]],
  ["was not carried out, behind one that may have been heard", 1, 503, ["held", "planned"]],
  ["was carried out", 0, 200, ["done", "done"]],
])("a worker that comes back after the drop and knows that its call %s", async (_, doubts, status, after) => {
  const waiting: ServerResponse[] = [];
  const { ukemi, pool, peer, url } = await startLedger((response) => void waiting.push(response));
  const client = createClient({ url });
  const first = await ukemi.effects.http(null, { url: peer.url, dedupe: "1", idempotent: true });
  await ukemi.effects.http(null, { url: peer.url, dedupe: "2", after: first });
  await pool.query("update ukemi.effects set uncertainties = $1 where after is null", [doubts]);
  await ukemi.work();
  await peer.saw(1);
  await pool.query(`${DIES}, lease_token = null, lease_until = null, worker = null`);
  await client.dropDead({ all: true, reason: "not wanted any more" });
  const statesNow = async () => {
    const { rows } = await pool.query<{ state: string }>(
      "select state from ukemi.effects order by dedupe_key",
    );
    return rows.map(({ state }) => state);
  };
  expect(await statesNow()).toEqual(["held", "planned"]);
  answerWith(waiting[0]!, status);
  const isWritten = "select from ukemi.effect_attempts where number = 1 and result <> 'uncertain'";
  await until(async () => (await pool.query(isWritten)).rowCount! > 0, "the answer to be known");
  if (status === 200) {
    await until(() => waiting.length === 2, "the one behind it");
    answerWith(waiting[1]!, 200);
  }
  await untilDrained(pool);
  expect(await statesNow()).toEqual(after);
  expect(peer.seen).toHaveLength(status === 200 ? 2 : 1);
  const { rows } = await pool.query(
    "select from ukemi.effects where (ended_at is null) <> (state in ('held', 'planned'))",
  );
  expect(rows).toEqual([]);
});
