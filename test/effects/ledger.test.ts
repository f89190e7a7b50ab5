// The ledger: an intent is written in the transaction that decides it, and carried out once, afterwards.
import type { ServerResponse } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { terminal } from "../../src/work/outcome.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { startPeer, type HttpPeer, type PeerAnswer } from "../support/http-peer.ts";
import { until } from "../support/until.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";

const TYPE = "payment_intent.succeeded";
const ok: PeerAnswer = (response) => answer(response, 200, { ok: true });

function answer(response: ServerResponse, status: number, body: unknown, headers = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

async function startWorld(peerAnswer: PeerAnswer = ok) {
  const peer = await startPeer(peerAnswer);
  onTestFinished(() => peer.stop());
  const database = await createDatabase();
  const destinations = { [peer.url]: { headers: { authorization: "Bearer token" } } };
  const made = makeUkemi(database.url, { http: { allow: [peer.url], tries: 3, destinations } });
  return { ...database, ...made, peer };
}

interface EffectRow {
  readonly id: string;
  readonly state: string;
  readonly attempt: number;
  readonly reason: string | null;
  readonly suppressed_by: string | null;
  readonly [column: string]: unknown;
}

async function readEffects(pool: Pool): Promise<EffectRow[]> {
  const { rows } = await pool.query<EffectRow>("select * from ukemi.effects order by planned_at, id");
  return rows;
}

const keysAt = (peer: HttpPeer) => peer.seen.map(({ key }) => key);

test("an effect is carried out after the handler's commit, with the ledger's key", async () => {
  const { ukemi, url, pool, peer } = await startWorld();
  ukemi.on("stripe", TYPE, async ({ effects, event }) => {
    const { id } = event as { id: string };
    await effects.http({ url: `${peer.url}/ship`, body: { id }, dedupe: `ship:${id}` });
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await peer.saw(1);
  await untilDrained(pool);
  const [effect] = await readEffects(pool);
  expect(effect).toMatchObject({ kind: "http", state: "done", attempt: 1, handler: `stripe/${TYPE}` });
  expect(keysAt(peer)).toEqual([effect!.id]);
  expect(peer.seen[0]!.body).toBe('{"id":"evt_1"}');
  const { rows } = await pool.query("select number, result, repeats from ukemi.effect_attempts");
  expect(rows).toEqual([{ number: 1, result: "done", repeats: false }]);
});

test("a handler that throws intends nothing", async () => {
  const { ukemi, url, pool, peer } = await startWorld();
  ukemi.on("stripe", TYPE, async ({ effects }) => {
    await effects.http({ url: peer.url, dedupe: "a" });
    throw terminal("no");
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await untilDrained(pool);
  expect(await readEffects(pool)).toEqual([]);
  expect(peer.seen).toEqual([]);
});

test("a second intent with the same key is recorded as suppressed, and names the first", async () => {
  const { ukemi, url, pool, peer } = await startWorld();
  const planned: unknown[] = [];
  for (const name of ["one", "two"]) {
    ukemi.on(
      "stripe",
      TYPE,
      async ({ effects }) => {
        planned.push(await effects.http({ url: peer.url, body: name, dedupe: "same" }));
      },
      { name },
    );
  }
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"]);
  await untilDrained(pool);
  const rows = await readEffects(pool);
  const first = rows.find(({ suppressed_by }) => suppressed_by === null)!;
  expect(rows.map(({ state }) => state).toSorted()).toEqual(["done", "suppressed"]);
  expect(rows.find(({ state }) => state === "suppressed")!.suppressed_by).toBe(first.id);
  expect(planned).toContainEqual({ id: first.id, suppressed: false });
  expect(planned).toContainEqual({ id: first.id, suppressed: true });
  expect(keysAt(peer)).toEqual([first.id]);
});

test.each([
  ["another target", { url: "/other" }],
  ["another amount", { amount: 101, currency: "jpy" }],
  ["another currency", { amount: 100, currency: "usd" }],
])("the same key for %s is an error that says so", async (_, change) => {
  const { ukemi, peer, pool } = await startWorld();
  const call = { url: peer.url, amount: 100, currency: "jpy", dedupe: "refund:1" };
  await ukemi.effects.http(null, call);
  const again = { ...call, ...change, url: `${peer.url}${"url" in change ? change.url : ""}` };
  await expect(ukemi.effects.http(null, again)).rejects.toMatchObject({ code: "effect_conflict" });
  expect(await readEffects(pool)).toHaveLength(1);
});

test("one tenant's key is not another's", async () => {
  const { ukemi, peer, pool } = await startWorld();
  const plan = (tenant: string) => ukemi.effects.http(null, { url: peer.url, dedupe: "k", tenant });
  const [a, b] = [await plan("a"), await plan("b")];
  expect([a.suppressed, b.suppressed]).toEqual([false, false]);
  await ukemi.work();
  await untilDrained(pool);
  expect(new Set(keysAt(peer))).toEqual(new Set([a.id, b.id]));
});

test("an effect in the caller's transaction is carried out if and only if that commits", async () => {
  const { ukemi, peer, pool } = await startWorld();
  await ukemi.work();
  const client = await pool.connect();
  await client.query("begin");
  await ukemi.effects.http(client, { url: peer.url, dedupe: "undone" });
  await client.query("rollback");
  await client.query("begin");
  const kept = await ukemi.effects.http(client, { url: peer.url, dedupe: "kept" });
  expect(peer.seen).toEqual([]);
  await client.query("commit");
  client.release();
  await peer.saw(1);
  await untilDrained(pool);
  expect(keysAt(peer)).toEqual([kept.id]);
});

test("many transactions that intend the same at once make one act", async () => {
  const { ukemi, peer, pool } = await startWorld();
  await ukemi.work();
  const planned = await Promise.all(
    Array.from({ length: 20 }, () => ukemi.effects.http(null, { url: peer.url, dedupe: "once" })),
  );
  expect(new Set(planned.map(({ id }) => id)).size).toBe(1);
  expect(planned.filter(({ suppressed }) => !suppressed)).toHaveLength(1);
  await untilDrained(pool);
  expect(peer.seen).toHaveLength(1);
});

test("one that comes after another waits for it, also where that is tried again", async () => {
  const order: string[] = [];
  const { ukemi, pool, peer } = await startWorld((response, request, call) => {
    order.push(request.url!);
    answer(response, call === 1 ? 503 : 200, {});
  });
  await ukemi.work();
  const first = await ukemi.effects.http(null, { url: `${peer.url}/first`, dedupe: "1" });
  await ukemi.effects.http(null, { url: `${peer.url}/second`, dedupe: "2", after: first });
  await untilDrained(pool);
  await until(() => order.length === 3, "three calls");
  await untilDrained(pool);
  expect(order).toEqual(["/first", "/first", "/second"]);
  const late = await ukemi.effects.http(null, { url: `${peer.url}/third`, dedupe: "3", after: first.id });
  await peer.saw(4);
  await untilDrained(pool);
  expect((await readEffects(pool)).find(({ id }) => id === late.id)!.state).toBe("done");
});

test("every try carries the same key, and what the peer said is kept", async () => {
  const { ukemi, pool, peer } = await startWorld((response, _, call) =>
    call < 3
      ? answer(
          response,
          503,
          { title: "Out of order", detail: "for jane@example.com" },
          { "content-type": "application/problem+json" },
        )
      : answer(response, 200, {}),
  );
  await ukemi.work();
  const { id } = await ukemi.effects.http(null, { url: peer.url, dedupe: "k" });
  await untilDrained(pool);
  expect(keysAt(peer)).toEqual([id, id, id]);
  const { rows } = await pool.query(
    "select number, result, error_class, answer::jsonb ->> 'title' as title from ukemi.effect_attempts order by number",
  );
  expect(rows).toEqual([
    { number: 1, result: "again", error_class: "HTTP 503", title: "Out of order" },
    { number: 2, result: "again", error_class: "HTTP 503", title: "Out of order" },
    { number: 3, result: "done", error_class: null, title: null },
  ]);
  const all = await pool.query("select answer, error_message from ukemi.effect_attempts");
  expect(JSON.stringify(all.rows)).not.toContain("jane");
});

test("one that is refused is failed, and its job a dead letter; replayed, it is sent again with the same key", async () => {
  let isRefusing = true;
  const { ukemi, pool, peer } = await startWorld((response) => answer(response, isRefusing ? 422 : 200, {}));
  await ukemi.work();
  const { id } = await ukemi.effects.http(null, { url: peer.url, dedupe: "k" });
  const [job] = await untilDrained(pool);
  expect(job).toMatchObject({ state: "dead", death: "terminal", error_class: "HTTP 422" });
  expect(await readEffects(pool)).toMatchObject([{ state: "failed" }]);
  isRefusing = false;
  await ukemi.operate.dead.replay({ ids: [Number(job!.id)] }, { actor: "test", reason: "corrected" });
  await peer.saw(2);
  await untilDrained(pool);
  expect(await readEffects(pool)).toMatchObject([{ state: "done", attempt: 2 }]);
  expect(keysAt(peer)).toEqual([id, id]);
});

test("a POST without an answer is held: a person must find out", async () => {
  const { ukemi, pool, peer, lines } = await startWorld((_, request) => request.socket.destroy());
  await ukemi.work();
  await ukemi.effects.http(null, { url: peer.url, dedupe: "k", body: "x" });
  await untilDrained(pool);
  expect(await readEffects(pool)).toMatchObject([{ state: "held", uncertainties: 1 }]);
  expect(peer.seen).toHaveLength(1);
  expect(lines().filter(({ alert }) => alert === "effect_held")).toHaveLength(1);
});

test.each([
  ["whose peer knows the key", { idempotent: true }],
  ["that may be repeated", { onUncertain: "retry" }],
] as const)("one without an answer %s is made again with the same key, and marked", async (_, change) => {
  const { ukemi, pool, peer } = await startWorld((response, request, call) =>
    call === 1 ? request.socket.destroy() : answer(response, 200, {}),
  );
  await ukemi.work();
  const { id } = await ukemi.effects.http(null, { url: peer.url, dedupe: "k", body: "x", ...change });
  await untilDrained(pool);
  expect(await readEffects(pool)).toMatchObject([{ state: "done", uncertainties: 1, attempt: 2 }]);
  expect(keysAt(peer)).toEqual([id, id]);
  const { rows } = await pool.query("select result, repeats from ukemi.effect_attempts order by number");
  expect(rows).toEqual([
    { result: "uncertain", repeats: false },
    { result: "done", repeats: true },
  ]);
});

test("a destination that refuses us closes; what is intended waits, and goes out when it opens again", async () => {
  let isLocked = true;
  const { ukemi, pool, peer, lines } = await startWorld((response) =>
    answer(response, isLocked ? 401 : 200, {}),
  );
  await ukemi.work();
  const planned = [];
  for (const dedupe of ["a", "b", "c"])
    planned.push(await ukemi.effects.http(null, { url: peer.url, dedupe }));
  await until(() => lines().some(({ alert }) => alert === "destination_closed"), "the alert");
  await until(
    async () => (await readEffects(pool)).every(({ state }) => state === "planned"),
    "every call to be over",
  );
  isLocked = false;
  const before = peer.seen.length;
  await pool.query("update ukemi.clock set shift = '40 s'");
  await untilDrained(pool);
  expect((await readEffects(pool)).map(({ state }) => state)).toEqual(["done", "done", "done"]);
  expect(peer.seen.length).toBe(before + 3);
  const { rows } = await pool.query("select failures, opened_at from ukemi.destinations");
  expect(rows).toEqual([{ failures: 0, opened_at: null }]);
});

test("Retry-After holds for the whole destination", async () => {
  const { ukemi, pool, peer } = await startWorld((response, _, call) =>
    call === 1 ? answer(response, 429, {}, { "retry-after": "3600" }) : answer(response, 200, {}),
  );
  await ukemi.work();
  await ukemi.effects.http(null, { url: peer.url, dedupe: "a" });
  await peer.saw(1);
  await until(
    async () =>
      (await pool.query("select from ukemi.destinations where paused_until is not null")).rowCount === 1,
    "the pause",
  );
  await ukemi.effects.http(null, { url: peer.url, dedupe: "b" });
  await until(
    async () => (await pool.query("select from ukemi.jobs where state = 'scheduled'")).rowCount === 2,
    "both to wait",
  );
  expect(peer.seen).toHaveLength(1);
  await pool.query("update ukemi.clock set shift = '2 hours'");
  await untilDrained(pool);
  expect(peer.seen).toHaveLength(3);
  // no try was burnt by the wait
  expect((await pool.query("select attempt from ukemi.jobs")).rows).toEqual([{ attempt: 1 }, { attempt: 1 }]);
});

test.each([
  ["hold", "held", 0],
  ["retry", "done", 1],
] as const)(
  "one whose process is gone in the middle of a call, policy %s: %s",
  async (onUncertain, state, calls) => {
    const { ukemi, pool, peer } = await startWorld();
    await ukemi.effects.http(null, { url: peer.url, dedupe: "k", body: "x", onUncertain });
    // as a crash leaves it: begun, and its job taken over
    await pool.query(`
    with begun as (update ukemi.effects set state = 'sending', attempt = 1 returning id)
    insert into ukemi.effect_attempts (effect, number, started_at) select id, 1, ukemi.now() from begun`);
    await ukemi.work();
    await untilDrained(pool);
    expect(await readEffects(pool)).toMatchObject([{ state, uncertainties: 1 }]);
    expect(peer.seen).toHaveLength(calls);
    const { rows } = await pool.query("select result from ukemi.effect_attempts order by number");
    expect(rows.map(({ result }) => result as string)).toEqual(["uncertain", ...(calls > 0 ? ["done"] : [])]);
  },
);
