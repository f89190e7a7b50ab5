// GET /api/v1/events, health and metrics: what an operator and a script see.
import { expect, test } from "vitest";
import { stripe } from "../../src/sources/stripe.ts";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";
import { asAdmin, createDatabase } from "../support/database.ts";
import { deliver } from "../support/deliver.ts";
import { startTestServer } from "../support/in-process.ts";
import { SECRET } from "../support/server.ts";
import { storeDirectly } from "../support/store.ts";

interface Page {
  readonly items: { id: string; event_id: string; status: string; [field: string]: unknown }[];
  readonly cursor?: string;
}

async function start(options: Parameters<typeof startTestServer>[0] = {}) {
  const { url: database, pool } = await createDatabase();
  const server = await startTestServer({ database, ...options });
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${server.url}${path}`, { headers });
    return { status: response.status, text: await response.text(), response };
  };
  const list = async (query: string) => JSON.parse((await get(`/api/v1/events${query}`)).text) as Page;
  return { ...server, database, pool, get, list };
}

test("shows an event with its refs, status and jobs, by our id and by the sender's", async () => {
  const { url, get, pool } = await start();
  await pool.query(
    "insert into ukemi.subscriptions (name, source, pattern) values ('on payment', 'stripe', 'payment_intent.*')",
  );
  const told = await deliver(url, "evt_1");
  const byOurs = await get(`/api/v1/events/${told.messageId}`);
  expect((await get("/api/v1/events/evt_1")).text).toBe(byOurs.text);
  expect(JSON.parse(byOurs.text)).toMatchObject({
    id: told.messageId,
    source: "stripe",
    account: "",
    livemode: false,
    event_id: "evt_1",
    type: "payment_intent.succeeded",
    tenant: null,
    refs: expect.arrayContaining([{ kind: "payment_intent", id: expect.stringMatching(/^pi_/) }]),
    status: "pending",
    origin: "webhook",
    received_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    occurred_at: expect.any(String),
    processed_at: null,
    error_message: null,
    jobs: [{ id: expect.any(Number), handler: "on payment", state: "ready", attempts: 0, tries: [] }],
    outcome: null,
    body_state: "kept",
    body_encoding: "utf8",
    body: expect.stringContaining('"payment_intent.succeeded"'),
    headers: expect.objectContaining({ "stripe-signature": expect.any(String) }),
  });
  const body = await get("/api/v1/events/evt_1/body");
  expect(body.text).toBe((JSON.parse(byOurs.text) as { body: string }).body);
});

test("pages newest first without missing or repeating a row while new ones arrive", async () => {
  const { list, database } = await start();
  const ids = Array.from({ length: 55 }, (_, index) => `evt_${index}`);
  for (const id of ids) await storeDirectly(database, [id]);
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await list(`?limit=10${cursor === undefined ? "" : `&cursor=${cursor}`}`);
    seen.push(...page.items.map((item) => item.event_id));
    cursor = page.cursor;
    await storeDirectly(database, [`evt_new_${seen.length}`]);
  } while (cursor !== undefined);
  expect(seen.filter((id) => !id.startsWith("evt_new"))).toEqual(ids.toReversed());
  expect(new Set(seen).size).toBe(seen.length);
});

test("filters by source, type, ref, tenant, status and time", async () => {
  const { url, list } = await start({
    sources: { stripe: stripe({ secrets: [SECRET], tenant: { metadata: "organiser" } }) },
  });
  const send = (id: string, type: string, organiser: string) => {
    const body = sampleEvent(type, { id, metadata: { organiser } });
    return fetch(`${url}/webhooks/stripe`, { method: "POST", headers: signStripe(body, SECRET), body });
  };
  await send("evt_a", "payment_intent.succeeded", "org_1");
  await send("evt_b", "charge.succeeded", "org_2");
  const ids = async (query: string) => (await list(query)).items.map((item) => item.event_id);
  expect(await ids("?source=stripe")).toEqual(["evt_b", "evt_a"]);
  expect(await ids("?source=other")).toEqual([]);
  expect(await ids("?type=charge.succeeded")).toEqual(["evt_b"]);
  expect(await ids("?tenant=org_1")).toEqual(["evt_a"]);
  expect(await ids("?status=unrouted")).toEqual(["evt_b", "evt_a"]);
  expect(await ids("?status=pending")).toEqual([]);
  const { refs } = (await list("?tenant=org_2")).items[0] as unknown as { refs: { id: string }[] };
  expect(await ids(`?ref=${refs[0]!.id}`)).toEqual(["evt_b"]);
  const soon = new Date(Date.now() + 60_000).toISOString();
  const before = new Date(Date.now() - 60_000).toISOString();
  expect(await ids(`?since=${soon}`)).toEqual([]);
  expect(await ids(`?until=${before}`)).toEqual([]);
  expect(await ids(`?since=${before}&until=${soon}&type=charge.succeeded`)).toEqual(["evt_b"]);
});

test.each([
  ["limit=0", "limit"],
  ["limit=201", "limit"],
  ["limit=x", "limit"],
  ["status=lost", "status"],
  ["since=yesterday", "since"],
  ["until=2026-13-45", "until"],
  ["cursor=abc", "cursor"],
  ["colour=red", "colour"],
  ["type=%00", "type"],
])("refuses the query %s with a problem that names the parameter", async (query, name) => {
  const { get } = await start();
  const { status, text } = await get(`/api/v1/events?${query}`);
  expect(status).toBe(400);
  expect(JSON.parse(text)).toMatchObject({
    code: "invalid_parameter",
    detail: expect.stringContaining(`"${name}"`),
  });
});

test("answers 404 for an unknown event or path, 405 for a method that is not there", async () => {
  const { url, get } = await start();
  expect((await get("/api/v1/events/evt_none")).status).toBe(404);
  expect((await get("/api/v1/events/%00")).status).toBe(404);
  expect((await get("/nowhere")).status).toBe(404);
  const posted = await fetch(`${url}/api/v1/events`, { method: "POST" });
  expect(posted.status).toBe(405);
});

test("demands the token for the API where one is set", async () => {
  const { get } = await start({ adminToken: "a-token-of-some-length" });
  expect((await get("/api/v1/events")).status).toBe(401);
  expect((await get("/api/v1/events", { authorization: "Bearer wrong" })).status).toBe(401);
  expect((await get("/api/v1/events", { authorization: "Bearer a-token-of-some-length" })).status).toBe(200);
  expect((await get("/healthz")).status).toBe(200);
  expect((await get("/readyz")).status).toBe(200);
});

test("without a token answers only this machine under a local name", async () => {
  const { get } = await start();
  for (const name of ["x-forwarded-for", "x-real-ip", "forwarded", "via", "x-forwarded-proto"]) {
    expect((await get("/api/v1/events", { [name]: "203.0.113.1" })).status).toBe(401);
  }
  const { url } = await start();
  const { exchange } = await import("../support/raw.ts");
  const answer = await exchange(
    url,
    "GET /api/v1/events HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n",
  );
  expect(answer.statuses).toEqual([401]);
});

test("refuses to listen beyond this machine without a token", async () => {
  const { url: database } = await createDatabase();
  await expect(startTestServer({ database, host: "0.0.0.0" })).rejects.toMatchObject({
    code: "invalid_option",
  });
});

test("is alive but not ready while the database is away", async () => {
  const { url: database, name } = await createDatabase();
  const server = await startTestServer({ database });
  await asAdmin(async (admin) => {
    await admin.query(`alter database ${name} allow_connections false`);
    await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [name]);
  });
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  const away = await fetch(`${server.url}/readyz`);
  expect([away.status, away.headers.get("retry-after")]).toEqual([503, "5"]);
  await asAdmin((admin) => admin.query(`alter database ${name} allow_connections true`));
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
});

test("counts what it received in metrics with bounded labels", async () => {
  const { url, get } = await start();
  await deliver(url, "evt_1");
  await deliver(url, "evt_1");
  await deliver(url, "evt_2", { secret: "whsec_wrong" });
  await fetch(`${url}/webhooks/${"x".repeat(50)}`, { method: "POST" });
  const { text } = await get("/metrics");
  expect(text).toContain('ukemi_inbox_events_total{source="stripe",result="accepted"} 1');
  expect(text).toContain('ukemi_inbox_events_total{source="stripe",result="duplicate"} 1');
  expect(text).toContain('ukemi_inbox_events_total{source="stripe",result="rejected_signature"} 1');
  expect(text).toContain('ukemi_inbox_events_total{source="unknown",result="rejected_route"} 1');
  expect(text).toContain('ukemi_inbox_commit_duration_seconds_count{source="stripe"} 2');
  expect(text).toContain('ukemi_http_requests_total{route="ingest",method="POST",code="204"} 2');
  expect(text).toMatch(/ukemi_inbox_last_event_timestamp_seconds\{source="stripe"\} \d/);
  expect(text).not.toContain("xxxxx");
});

test("writes one wide line for each request", async () => {
  const { url, lines } = await start();
  const told = await deliver(url, "evt_1");
  expect(lines().filter((line) => line.msg === "webhook")).toEqual([
    {
      level: "info",
      time: expect.any(String),
      app: "ukemi",
      msg: "webhook",
      request_id: expect.any(String),
      source: "stripe",
      result: "accepted",
      status: 204,
      duration_ms: expect.any(Number),
      commit_ms: expect.any(Number),
      body_bytes: expect.any(Number),
      event_id: "evt_1",
      event_type: "payment_intent.succeeded",
      message_id: told.messageId,
      address: "127.0.0.x",
    },
  ]);
});

test("finds an event whose sender gives it a uuid", async () => {
  const { get, database } = await start();
  const id = "0f8fad5b-d9cb-469f-a165-70867728950e";
  await storeDirectly(database, [id]);
  expect(JSON.parse((await get(`/api/v1/events/${id}`)).text)).toMatchObject({ event_id: id });
});

test("shows times right whatever date style and time zone the database is set to", async () => {
  const { url: database, pool, name } = await createDatabase();
  await pool.query(`alter database ${name} set datestyle = 'SQL, DMY'`);
  await pool.query(`alter database ${name} set timezone = 'Asia/Kolkata'`);
  const server = await startTestServer({ database });
  await deliver(server.url, "evt_1");
  const shown = (await (await fetch(`${server.url}/api/v1/events/evt_1`)).json()) as { received_at: string };
  expect(Math.abs(Date.parse(shown.received_at) - Date.now())).toBeLessThan(60_000);
});

test("takes a request in absolute form", async () => {
  const { url } = await start();
  const { exchange } = await import("../support/raw.ts");
  const answer = await exchange(
    url,
    "GET http://localhost/healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
  );
  expect(answer.statuses).toEqual([200]);
});
