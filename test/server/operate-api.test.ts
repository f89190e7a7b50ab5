// /api/v1/dead and /api/v1/queues: what a script of an operator's meets.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { HANDLER, makeDead, readAudit, readOutcomes, refuseAudit, register } from "../support/dead.ts";
import { startTestServer } from "../support/in-process.ts";
import { untilDrained } from "../support/work.ts";

const JSON_TYPE = { "content-type": "application/json" };

async function start(options: Parameters<typeof startTestServer>[0] = {}) {
  const store = await createDatabase();
  const server = await startTestServer({ database: store.url, pollMs: 50, ...options });
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${server.url}/api/v1${path}`, init);
    const text = await response.text();
    const body = JSON.parse(text) as {
      items: Record<string, unknown>[];
      cursor?: string;
      [field: string]: unknown;
    };
    return { status: response.status, type: response.headers.get("content-type"), body };
  };
  const post = (path: string, body: unknown, headers: Record<string, string> = JSON_TYPE) =>
    ask(path, { method: "POST", headers, body: typeof body === "string" ? body : JSON.stringify(body) });
  await register(store.pool);
  return { ...server, ...store, server, ask, post };
}

test("lists, groups and shows dead letters", async () => {
  const { ask, ...store } = await start();
  const ids = await makeDead(store, ["evt_1", "evt_2", "evt_3"], {
    tenant: "org_1",
    refs: [{ kind: "payment_intent", id: "pi_1" }],
  });
  const first = await ask("/dead?limit=2&error_class=TypeError");
  expect(first.body.items).toHaveLength(2);
  const second = await ask(`/dead?limit=2&error_class=TypeError&cursor=${first.body.cursor}`);
  const all = [...first.body.items, ...second.body.items];
  expect(all.map((item) => String(item.event_id)).toSorted()).toEqual(["evt_1", "evt_2", "evt_3"]);
  expect(second.body.cursor).toBeUndefined();
  expect(all[0]).toEqual({
    id: expect.any(Number),
    handler: HANDLER,
    queue: "default",
    kind: "handler",
    event: expect.any(String),
    event_id: expect.any(String),
    source: "stripe",
    type: "payment_intent.succeeded",
    tenant: "org_1",
    refs: [{ kind: "payment_intent", id: "pi_1" }],
    death: "exhausted",
    error_class: "TypeError",
    error_message: expect.any(String),
    attempts: 4,
    recoveries: 0,
    revivals: 0,
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    died_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
  });
  expect((await ask(`/dead?ids=${ids.get("evt_1")},${ids.get("evt_3")}`)).body.items).toHaveLength(2);
  expect((await ask("/dead?ref=pi_2")).body.items).toEqual([]);
  expect((await ask("/dead?death=exhausted")).body.items).toHaveLength(3);
  expect((await ask("/dead?death=crashed")).body.items).toEqual([]);
  expect((await ask("/dead/groups?tenant=org_1")).body.items).toMatchObject([
    { error_class: "TypeError", handler: HANDLER, count: 3 },
  ]);
  const shown = await ask(`/dead/${ids.get("evt_1")}`);
  expect(shown.body).toMatchObject({
    id: ids.get("evt_1"),
    state: "dead",
    tries: [{ error_stack: "at there" }],
  });
  expect((await ask("/dead/999999")).status).toBe(404);
  expect((await ask("/dead/abc")).status).toBe(404);
});

test("previews, replays and drops, with the reason in the audit", async () => {
  const { post, server, ...store } = await start();
  const ids = await makeDead(store, ["evt_1", "evt_2"]);
  await makeDead(store, ["evt_3"], { errorClass: "RangeError" });
  const filter = { error_class: "TypeError" };
  expect((await post("/dead/replay", { filter, dry_run: true })).body).toEqual({
    dry_run: true,
    count: 2,
    without_body: 0,
    groups: [{ handler: HANDLER, error_class: "TypeError", count: 2, without_body: 0, workers: 0 }],
    effects: { would_run: { count: 0, items: [] }, done: { count: 0, items: [] } },
  });
  expect(await readOutcomes(store.pool)).toMatchObject({ evt_1: "failed" });
  server.ukemi.on("stripe", "payment_intent.succeeded", () => {});
  await server.ukemi.work();
  const replayed = await post("/dead/replay", { filter, reason: "the customer is there now" });
  expect(replayed).toMatchObject({
    status: 200,
    body: { dry_run: false, changed: 2, skipped: 0, skips: [] },
  });
  await untilDrained(store.pool);
  expect(await readOutcomes(store.pool)).toEqual({ evt_1: "success", evt_2: "success", evt_3: "failed" });
  const again = await post("/dead/replay", { ids: [ids.get("evt_1")], reason: "again" });
  expect(again.body).toMatchObject({ changed: 0, skips: [{ id: ids.get("evt_1"), reason: "not_dead" }] });
  const dropped = await post("/dead/drop", { filter: { since: "2020-01-01" }, reason: "a test" });
  expect(dropped.body).toMatchObject({ changed: 1 });
  const acts = (await readAudit(store.pool)).filter((row) => row.role === "operator");
  expect(acts.map((row) => [row.actor, row.action, (row.details as { reason: string }).reason])).toEqual([
    ["api:local", "job.replayed", "the customer is there now"],
    ["api:local", "job.replayed", "the customer is there now"],
    ["api:local", "job.dropped", "a test"],
  ]);
});

const REFUSED: [string, unknown, Record<string, string>, string][] = [
  ["no JSON", "reason=x", JSON_TYPE, "JSON"],
  ["a list", [1], JSON_TYPE, "JSON"],
  ["a type that web pages may send", { ids: [1], reason: "x" }, { "content-type": "text/plain" }, "JSON"],
  ["no reason", { ids: [1] }, JSON_TYPE, '"reason"'],
  ["a blank reason", { ids: [1], reason: "  " }, JSON_TYPE, '"reason"'],
  ["a reason of another kind", { ids: [1], reason: 7 }, JSON_TYPE, '"reason"'],
  ["a reason without end", { ids: [1], reason: "x".repeat(501) }, JSON_TYPE, '"reason"'],
  ["an unknown field", { ids: [1], reason: "x", force: true }, JSON_TYPE, '"force"'],
  ["an unknown field of the filter", { filter: { colour: "red" }, reason: "x" }, JSON_TYPE, '"colour"'],
  ["neither ids nor filter", { reason: "x" }, JSON_TYPE, '"ids"'],
  ["both ids and filter", { ids: [1], filter: { queue: "a" }, reason: "x" }, JSON_TYPE, '"ids"'],
  ["an empty filter", { filter: {}, reason: "x" }, JSON_TYPE, '"filter"'],
  ["no ids", { ids: [], reason: "x" }, JSON_TYPE, '"ids"'],
  ["too many ids", { ids: Array.from({ length: 1001 }, (_, i) => i + 1), reason: "x" }, JSON_TYPE, '"ids"'],
  ["ids of another kind", { ids: ["1; drop table"], reason: "x" }, JSON_TYPE, '"ids"'],
  ["ids beyond numbers", { ids: [1e300], reason: "x" }, JSON_TYPE, '"ids"'],
  ["a filter of another kind", { filter: { tenant: ["a"] }, reason: "x" }, JSON_TYPE, '"tenant"'],
  ["a NUL", { filter: { tenant: "a\u0000" }, reason: "x" }, JSON_TYPE, '"tenant"'],
  ["a way to die that is none", { filter: { death: "old age" }, reason: "x" }, JSON_TYPE, '"death"'],
  ["a wrong time", { filter: { since: "yesterday" }, reason: "x" }, JSON_TYPE, '"since"'],
  ["a dry run that is no flag", { ids: [1], reason: "x", dry_run: "yes" }, JSON_TYPE, '"dry_run"'],
];

test("refuses bodies that could mean something else than was meant, and changes nothing", async () => {
  const { post, ...store } = await start();
  await makeDead(store, ["evt_1"]);
  for (const [what, body, headers, named] of REFUSED) {
    for (const act of ["replay", "drop"]) {
      expect(await post(`/dead/${act}`, body, headers), what).toMatchObject({
        status: 400,
        type: "application/problem+json",
        body: { code: "invalid_parameter", detail: expect.stringContaining(named) },
      });
    }
  }
  expect(await readOutcomes(store.pool)).toEqual({ evt_1: "failed" });
  expect(await readAudit(store.pool)).toEqual([]);
});

test("refuses a body that is too large", async () => {
  const { post } = await start();
  expect(await post("/dead/drop", { reason: "x".repeat(70_000) })).toMatchObject({
    status: 413,
    body: { code: "payload_too_large" },
  });
});

test("refuses queries that it does not understand, and names the parameter", async () => {
  const { ask } = await start();
  const queries = ["colour=red", "limit=0", "cursor=abc", "since=yesterday", "ids=a", "tenant=%00", "ids="];
  for (const query of queries) {
    expect(await ask(`/dead?${query}`), query).toMatchObject({
      status: 400,
      body: { code: "invalid_parameter", detail: expect.stringContaining(`"${query.split("=")[0]}"`) },
    });
  }
});

test("pauses and resumes a queue, and shows what waits in it", async () => {
  const { ask, post, pool } = await start();
  expect((await post("/queues/default/pause", { reason: "the bank is down" })).body).toEqual({
    name: "default",
    paused: true,
    changed: true,
  });
  expect((await ask("/queues")).body.items).toEqual([
    {
      name: "default",
      paused: true,
      reason: "the bank is down",
      changed_at: expect.any(String),
      ready: 0,
      scheduled: 0,
      waiting: 0,
      running: 0,
      dead: 0,
      oldest_ready_seconds: null,
    },
  ]);
  expect(await post("/queues/default/resume", {})).toMatchObject({ status: 400 });
  expect((await post("/queues/default/resume", { reason: "it is back" })).body).toMatchObject({
    changed: true,
  });
  expect((await readAudit(pool)).map((row) => row.action)).toEqual(["queue.paused", "queue.resumed"]);
  for (const act of ["pause", "resume"]) {
    expect(await post(`/queues/nope/${act}`, { reason: "x" })).toMatchObject({
      status: 404,
      body: { code: "not_found", detail: 'There is no queue "nope": there is default.' },
    });
  }
  expect(await post("/queues/inline/pause", { reason: "x" })).toMatchObject({
    status: 400,
    body: { detail: "The queue inline cannot be paused: its handlers run before the sender is answered." },
  });
  expect(await ask("/queues?colour=red")).toMatchObject({ status: 400 });
});

test("answers 500 and changes nothing when the audit fails", async () => {
  const { post, ...store } = await start();
  await makeDead(store, ["evt_1"]);
  await refuseAudit(store.pool, "job.dropped");
  expect(await post("/dead/drop", { filter: { queue: "default" }, reason: "x" })).toMatchObject({
    status: 500,
    body: { code: "internal" },
  });
  expect(await readOutcomes(store.pool)).toEqual({ evt_1: "failed" });
});

test("demands the token, and knows which methods there are", async () => {
  const { ask, post, server } = await start({ adminToken: "a-token-of-some-length" });
  for (const path of ["/dead", "/dead/groups", "/dead/1", "/queues"])
    expect((await ask(path)).status).toBe(401);
  for (const path of ["/dead/replay", "/dead/drop", "/queues/default/pause", "/queues/default/resume"]) {
    expect((await post(path, { ids: [1], reason: "x" })).status).toBe(401);
  }
  const authorization = "Bearer a-token-of-some-length";
  const allowed = async (method: string, path: string) => {
    const response = await fetch(`${server.url}/api/v1${path}`, { method, headers: { authorization } });
    return [response.status, response.headers.get("allow")];
  };
  expect(await allowed("POST", "/dead")).toEqual([405, "GET"]);
  expect(await allowed("GET", "/dead/replay")).toEqual([405, "POST"]);
  expect(await allowed("DELETE", "/dead/1")).toEqual([405, "GET"]);
  expect(await allowed("GET", "/queues/default/pause")).toEqual([405, "POST"]);
  expect(await allowed("GET", "/queues/default/stop")).toEqual([404, null]);
  const paused = await post("/queues/default/pause", { reason: "x" }, { ...JSON_TYPE, authorization });
  expect(paused.status).toBe(200);
});
