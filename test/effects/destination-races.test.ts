// What is said of a destination while calls to it begin: two connections, one held up in the middle of its transaction.
import { NO_KEYS } from "../../src/storage/keyring.ts";
import { expect, onTestFinished, test } from "vitest";
import { pauseDestination, resumeDestination } from "../../src/storage/destination-change.ts";
import { BUSY, noteHealth, pause } from "../../src/storage/destinations.ts";
import { beginEffect, type Begun } from "../../src/storage/effects-begin.ts";
import { connect, type Connection, type Pool, type Queryable } from "../../src/storage/postgres.ts";
import { settleFailed } from "../../src/storage/settle-failed.ts";
import { createDatabase } from "../support/database.ts";
import { LIMITS } from "../support/store.ts";
import { until } from "../support/until.ts";
import { makeUkemi } from "../support/work.ts";

const URL = "https://api.example.com";
const BY = { name: URL, actor: "test", reason: "they move" };
const HOUR_MS = 3_600_000;
const WORKER = "01900000-0000-7000-8000-000000000001";

interface Held {
  readonly client: Connection;
  readonly pid: number;
}

/** A transaction that stays open until the test ends it. */
async function open(url: string): Promise<Held> {
  const client = await connect(url, LIMITS);
  onTestFinished(() => client.end());
  await client.query("begin");
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return { client, pid: rows[0]!.pid };
}

const close = ({ client }: Held) => client.query("commit");

const isWaiting = async (pool: Pool, { pid }: Held) =>
  (await pool.query("select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'", [pid]))
    .rowCount === 1;

/** Resolves when the act waits for a lock, or has ended without waiting. */
async function untilHeldUp(pool: Pool, who: Held, act: Promise<unknown>): Promise<"waits" | "ended"> {
  let ended = false;
  const end = () => void (ended = true);
  act.then(end, end);
  await until(async () => ended || isWaiting(pool, who), "the act to wait or to end");
  return ended ? "ended" : "waits";
}

/** Effects whose jobs are in a worker's hands. */
async function plan(count = 1, limits: Parameters<typeof begin>[2] = {}) {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url, { http: {} });
  const effects: string[] = [];
  for (let n = 0; n < count; n += 1) {
    effects.push((await ukemi.effects.http(null, { url: URL, dedupe: `${n}` })).id);
  }
  await pool.query(
    `update ukemi.jobs
     set state = 'running', lease_token = gen_random_uuid(), lease_until = ukemi.now() + interval '1 h', worker = $1`,
    [WORKER],
  );
  return { url, pool, effects, start: (client: Queryable, effect: string) => begin(client, effect, limits) };
}

async function leaseOf(client: Queryable, effect: string): Promise<{ id: string; token: string }> {
  const { rows } = await client.query<{ id: string; token: string }>(
    "select j.id, j.lease_token as token from ukemi.jobs j join ukemi.effects e on e.job = j.id where e.id = $1::uuid",
    [effect],
  );
  return rows[0]!;
}

async function begin(
  client: Queryable,
  effect: string,
  limits: { readonly concurrency?: number },
): Promise<Begun> {
  return beginEffect(client, {
    effect,
    lease: await leaseOf(client, effect),
    worker: WORKER,
    keyring: NO_KEYS,
    onDoubt: () => {},
    mayRepeat: () => true,
    mayStill: () => true,
    limitsFor: () => limits,
  });
}

/** As a worker puts it off, in the transaction in which it asked. */
async function putOff(client: Queryable, effect: string): Promise<void> {
  const error = { class: BUSY, message: "it is paused", stack: null };
  const failure = { next: "wait", withinMs: 30 * 24 * HOUR_MS, delayMs: HOUR_MS, error } as const;
  const tried = { durationMs: 1, worker: WORKER, traceId: null };
  await settleFailed(client, await leaseOf(client, effect), failure, tried);
}

test.each([["no limits", {}] as const, ["a limit", { concurrency: 5 }] as const])(
  "a job that is being put off while its destination is resumed is woken, with %s",
  async (_, limits) => {
    const { url, pool, effects, start } = await plan(1, limits);
    await pause(pool, URL, { ms: HOUR_MS, reason: "they move" });
    const worker = await open(url);
    expect(await start(worker.client, effects[0]!)).toMatchObject({ is: "wait", why: "pause" });
    const operator = await open(url);
    const resumed = resumeDestination(operator.client, BY);
    await untilHeldUp(pool, operator, resumed);
    await putOff(worker.client, effects[0]!);
    await close(worker);
    expect(await resumed).toEqual({ changed: true, woken: 1 });
    await close(operator);
    expect((await pool.query("select state from ukemi.jobs")).rows).toEqual([{ state: "ready" }]);
  },
);

const STOPS: [string, (client: Queryable, effect: string) => Promise<unknown>, string][] = [
  ["an operator's pause", (client) => pauseDestination(client, { ...BY, ms: HOUR_MS }), "pause"],
  ["a pause that the peer asks for", (client) => pause(client, URL, { ms: HOUR_MS, reason: "429" }), "pause"],
  [
    "a circuit that opens",
    (client, effect) => noteHealth(client, URL, { effect, health: "blocked", reason: "a wrong password" }),
    "circuit",
  ],
];

for (const row of ["which nothing was ever said of", "which failed before"]) {
  const given = async (pool: Pool) => {
    if (row === "which failed before") {
      await pool.query("insert into ukemi.destinations (name, failures) values ($1, 1)", [URL]);
    }
  };

  test.each(STOPS)(`%s waits for the call that is being begun, to one ${row}`, async (_, stop) => {
    const { url, pool, effects, start } = await plan(2);
    await given(pool);
    const worker = await open(url);
    expect(await start(worker.client, effects[0]!)).toMatchObject({ is: "go" });
    const other = await open(url);
    const stopped = stop(other.client, effects[1]!);
    expect(await untilHeldUp(pool, other, stopped)).toBe("waits");
    await close(worker);
    await stopped;
    await close(other);
  });

  test.each(STOPS)(`no call begins after %s is committed, to one ${row}`, async (_, stop, why) => {
    const { url, pool, effects, start } = await plan(2);
    await given(pool);
    const other = await open(url);
    await stop(other.client, effects[1]!);
    const worker = await open(url);
    const begun = start(worker.client, effects[0]!);
    await untilHeldUp(pool, worker, begun);
    await close(other);
    expect(await begun).toMatchObject({ is: "wait", why });
    await close(worker);
    expect(await readStates(pool)).toEqual(["planned", "planned"]);
  });
}

const readStates = async (pool: Pool) =>
  (await pool.query<{ state: string }>("select state from ukemi.effects")).rows.map(({ state }) => state);

test("calls to a destination without limits do not wait for each other, nor for one that fails", async () => {
  const { url, effects, start } = await plan(3);
  const [first, second, failing] = [await open(url), await open(url), await open(url)];
  expect(await start(first.client, effects[0]!)).toMatchObject({ is: "go" });
  await noteHealth(failing.client, URL, { effect: effects[2]!, health: "failing", reason: "503" });
  await second.client.query("set local lock_timeout = 500");
  expect(await start(second.client, effects[1]!)).toMatchObject({ is: "go" });
  for (const held of [first, second, failing]) await close(held);
});

test("of two that would try out an open circuit one may, and the other asks again in a moment", async () => {
  const { url, pool, effects, start } = await plan(2);
  await pool.query(
    "insert into ukemi.destinations (name, failures, opened_at, probe_at) values ($1, 10, ukemi.now(), ukemi.now())",
    [URL],
  );
  const [first, second] = [await open(url), await open(url)];
  expect(await start(first.client, effects[0]!)).toMatchObject({ is: "go" });
  await second.client.query("set local lock_timeout = 500");
  const begun = await start(second.client, effects[1]!);
  expect(begun).toMatchObject({ is: "wait", why: "circuit" });
  expect((begun as { waitMs: number }).waitMs).toBeLessThan(1000);
  await close(first);
  await close(second);
  expect(await start(pool, effects[1]!)).toMatchObject({ is: "wait", why: "circuit" });
});

test("whoever closes the circuit does not wait for a job that has been begun since", async () => {
  const { url, pool, effects, start } = await plan(2);
  await pool.query(
    "insert into ukemi.destinations (name, failures, opened_at, probe_at) values ($1, 10, ukemi.now(), ukemi.now())",
    [URL],
  );
  const closer = await open(url);
  // what is seen as put off when it is looked for may be in a worker's hands when it is reached
  const worker = await open(url);
  await putOff(pool, effects[0]!);
  await worker.client.query("select from ukemi.jobs where state = 'scheduled' for share");
  await closer.client.query("set local lock_timeout = 500");
  const note = { effect: effects[1]!, health: "well", reason: "" } as const;
  expect(await noteHealth(closer.client, URL, note)).toBe("closed");
  await close(closer);
  expect(await start(worker.client, effects[1]!)).toMatchObject({ is: "go" });
  await close(worker);
});

test("a call that began before the circuit opened says nothing new, however close", async () => {
  const { url, pool, effects, start } = await plan(2);
  const [worker, opener] = [await open(url), await open(url)];
  let goOn = () => {};
  const gate = new Promise<void>((resolve) => (goOn = resolve));
  let hasLooked = false;
  const slow = {
    async query(text: string, values?: unknown[]) {
      if (text.includes("set state = 'sending'")) {
        hasLooked = true;
        await gate;
      }
      return worker.client.query(text, values);
    },
  } as Queryable;
  const begun = start(slow, effects[0]!);
  await until(() => hasLooked, "the worker to have looked at its destination");
  const note = (effect: string) => ({ effect, health: "blocked", reason: "a wrong password" }) as const;
  const opened = noteHealth(opener.client, URL, note(effects[1]!));
  expect(await untilHeldUp(pool, opener, opened)).toBe("waits");
  goOn();
  expect(await begun).toMatchObject({ is: "go" });
  await close(worker);
  expect(await opened).toBe("opened");
  await close(opener);
  const read = async () =>
    (await pool.query("select opened_at, probe_at, probes from ukemi.destinations")).rows;
  const before = await read();
  expect(before).toMatchObject([{ probes: 1 }]);
  expect(await noteHealth(pool, URL, note(effects[0]!))).toBeUndefined();
  expect(await read()).toEqual(before);
});
