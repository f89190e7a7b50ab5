// Idempotency-Key: a change that is asked for twice is made once, whatever happens in between.
import { expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { createDatabase } from "../support/database.ts";
import { makeDead, readAudit, refuseAudit, register } from "../support/dead.ts";
import { startTestServer } from "../support/in-process.ts";
import { makeToken } from "../support/token.ts";
import { readJobs } from "../support/work.ts";

async function start() {
  const store = await createDatabase();
  const server = await startTestServer({ database: store.url });
  await register(store.pool);
  const post = async (path: string, body: unknown, key?: string, token?: string) => {
    const response = await fetch(`${server.url}/api/v1${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(key === undefined ? {} : { "idempotency-key": key }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    return { status: response.status, replayed: response.headers.get("idempotency-replayed"), answer };
  };
  return { ...store, ...server, store, post };
}

test("the second request is answered as the first was, and changes nothing", async () => {
  const { store, pool, post } = await start();
  const id = (await makeDead(store, ["evt_1"])).get("evt_1")!;
  const body = { ids: [id], reason: "mended" };
  const first = await post("/dead/replay", body, "key-1");
  expect(first).toMatchObject({ status: 200, replayed: null, answer: { changed: 1 } });
  // it dies again: a second replay would run it once more
  await makeDead(store, []);
  const second = await post("/dead/replay", body, "key-1");
  expect(second).toEqual({ ...first, replayed: "true" });
  expect((await readJobs(pool))[0]).toMatchObject({ state: "dead" });
  expect((await readAudit(pool)).filter(({ action }) => action === "job.replayed")).toHaveLength(1);
  // without the key it is another request
  expect(await post("/dead/replay", body)).toMatchObject({ answer: { changed: 1 } });
});

test("the same key with another request is refused; another caller's key is another key", async () => {
  const { ukemi, post } = await start();
  const jane = await makeToken(ukemi, { scope: "operate" });
  const joe = await ukemi.operate.tokens.make(
    { name: "operate for tests", scope: "operate" }, // the same name as jane's
    { actor: "test:jane", reason: "x" },
  );
  await post("/queues/default/pause", { reason: "a deploy" }, "key-1", jane);
  const other = await post("/queues/default/resume", { reason: "a deploy" }, "key-1", jane);
  expect(other).toMatchObject({ status: 422, answer: { code: "idempotency_key_reused" } });
  const reworded = await post("/queues/default/pause", { reason: "another" }, "key-1", jane);
  expect(reworded.status).toBe(422);
  expect(await post("/queues/default/resume", { reason: "over" }, "key-1", joe.secret)).toMatchObject({
    status: 200,
    answer: { changed: true },
  });
});

test("ten at the same time make one change", async () => {
  const { store, pool, post } = await start();
  const ids = [...(await makeDead(store, ["evt_1", "evt_2"])).values()];
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => post("/dead/drop", { ids, reason: "old" }, "key-1")),
  );
  expect(new Set(answers.map(({ answer }) => JSON.stringify(answer))).size).toBe(1);
  expect(answers.filter(({ replayed }) => replayed === null)).toHaveLength(1);
  expect((await readAudit(pool)).filter(({ action }) => action === "job.dropped")).toHaveLength(2);
});

test("requests that wait for their like keep nobody from the store, and what changes nothing takes no key", async () => {
  const { pool, post, url } = await start();
  const blocker = await pool.connect();
  await blocker.query("begin");
  await blocker.query(
    "select pg_advisory_xact_lock(hashtextextended('ukemi.idempotency api:local key-1', 0))",
  );
  const waiting = Array.from({ length: 30 }, () => post("/queues/default/pause", { reason: "x" }, "key-1"));
  for (let look = 0; look < 10; look++) expect((await fetch(`${url}/api/v1/events`)).status).toBe(200);
  await blocker.query("commit");
  blocker.release();
  const statuses = (await Promise.all(waiting)).map(({ status }) => status);
  // those that came when their time was over are told to come again
  expect(statuses.every((status) => status === 200 || status === 503)).toBe(true);
  expect((await readAudit(pool)).length).toBeLessThanOrEqual(1);

  await post("/operations/preview", { kind: "drop", all: true }, "key-2");
  const { rows } = await pool.query("select key from ukemi.idempotency_keys where key = 'key-2'");
  expect(rows).toEqual([]);
});

test("an erasure is made in small commits, and its answer is kept all the same", async () => {
  const { store, pool, post } = await start();
  await makeDead(store, ["evt_1"], { refs: [{ kind: "customer", id: "cus_1" }] });
  await pool.query("update ukemi.jobs set state = 'cancelled', death = null");
  const first = await post("/erasures", { ref: "cus_1", reason: "a request" }, "key-1");
  expect(first).toMatchObject({ status: 200, answer: { bodies: 1 } });
  expect(await post("/erasures", { ref: "cus_1", reason: "a request" }, "key-1")).toEqual({
    ...first,
    replayed: "true",
  });
});

test("a change that failed leaves its key free", async () => {
  const { store, pool, post } = await start();
  const id = (await makeDead(store, ["evt_1"])).get("evt_1")!;
  await refuseAudit(pool, "job.replayed");
  const body = { ids: [id], reason: "mended" };
  expect((await post("/dead/replay", body, "key-1")).status).toBe(500);
  expect((await readJobs(pool))[0]).toMatchObject({ state: "dead" });
  await pool.query("drop trigger refuse_audit on ukemi.audit_log");
  expect(await post("/dead/replay", body, "key-1")).toMatchObject({ status: 200, answer: { changed: 1 } });
});

test("a key is forgotten after a day, a dry run takes none, and a wrong one is refused", async () => {
  const { store, pool, post } = await start();
  const id = (await makeDead(store, ["evt_1"])).get("evt_1")!;
  const body = { ids: [id], reason: "mended" };
  await post("/dead/replay", { ...body, dry_run: true }, "key-1");
  expect(await post("/dead/replay", body, "key-1")).toMatchObject({ replayed: null, answer: { changed: 1 } });
  await makeDead(store, []);
  await pool.query("update ukemi.clock set shift = interval '25 hours'");
  expect(await post("/dead/replay", body, "key-1")).toMatchObject({ replayed: null, answer: { changed: 1 } });
  for (const key of ["two words", "x".repeat(256)]) {
    expect(await post("/dead/replay", body, key)).toMatchObject({ status: 400 });
  }
});

test("the client makes a change once though the answer to it is lost", async () => {
  const { store, url, pool } = await start();
  const id = (await makeDead(store, ["evt_1"])).get("evt_1")!;
  let tries = 0;
  const client = createClient({
    url,
    async fetch(request) {
      tries += 1;
      const response = await fetch(request);
      if (tries > 1) return response;
      await response.arrayBuffer();
      throw new TypeError("the connection was cut");
    },
  });
  expect(await client.replayDead({ ids: [id], reason: "mended" })).toMatchObject({ changed: 1 });
  expect(tries).toBe(2);
  expect((await readAudit(pool)).filter(({ action }) => action === "job.replayed")).toHaveLength(1);
});
