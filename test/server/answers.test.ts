// The answers of POST /webhooks/:source, exactly as the design's table has them.
import { expect, test } from "vitest";
import { hmac } from "../../src/sources/hmac.ts";
import { stripe } from "../../src/sources/stripe.ts";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";
import { createDatabase } from "../support/database.ts";
import { deliver } from "../support/deliver.ts";
import { startTestServer } from "../support/in-process.ts";
import { open } from "../support/raw.ts";
import { SECRET } from "../support/server.ts";
import { until } from "../support/until.ts";

const now = () => Math.floor(Date.now() / 1000);

async function post(url: string, body: string | Buffer, headers: Record<string, string>, method = "POST") {
  const init = method === "GET" || method === "HEAD" ? {} : { body };
  const response = await fetch(url, { method, headers, ...init });
  return { response, status: response.status, text: await response.text() };
}

async function startStripe(options: Parameters<typeof startTestServer>[0] = {}) {
  const { url: database, pool } = await createDatabase();
  const server = await startTestServer({ database, ...options });
  return { ...server, pool, endpoint: `${server.url}/webhooks/stripe` };
}

test("answers an accepted event with an empty 204 and the ids in headers", async () => {
  const { endpoint } = await startStripe();
  const body = sampleEvent("charge.succeeded", { id: "evt_1" });
  const { response, status, text } = await post(endpoint, body, {
    ...signStripe(body, SECRET),
    "x-request-id": "my-id.1",
  });
  expect([status, text]).toEqual([204, ""]);
  expect(response.headers.get("x-request-id")).toBe("my-id.1");
  expect(response.headers.get("x-event-id")).toBe("evt_1");
  expect(response.headers.get("x-message-id")).toMatch(/^[0-9a-f-]{36}$/);
  expect(response.headers.has("x-duplicate")).toBe(false);
  expect(response.headers.has("content-length")).toBe(false);
});

test("answers a duplicate with 204 and x-duplicate", async () => {
  const { url } = await startStripe();
  const first = await deliver(url, "evt_1");
  expect(await deliver(url, "evt_1")).toEqual({ ...first, duplicate: true });
});

const body = sampleEvent("charge.succeeded", { id: "evt_1" });
const other = sampleEvent("charge.succeeded", { id: "evt_2" });
const broken = '{"id":"evt_1","object":"event"';

test.each([
  ["no signature", body, {}],
  ["a wrong secret", body, signStripe(body, "whsec_wrong")],
  ["another body", other, signStripe(body, SECRET)],
  ["a stale timestamp", body, signStripe(body, SECRET, { timestamp: now() - 400 })],
  ["a far-future timestamp", body, signStripe(body, SECRET, { timestamp: now() + 400 })],
  ["a malformed header", body, { "stripe-signature": "t=,v1=" }],
  [
    "only v0",
    body,
    { "stripe-signature": signStripe(body, SECRET)["stripe-signature"].replace("v1=", "v0=") },
  ],
  ["a signed body that is no JSON", broken, signStripe(broken, SECRET)],
  ["a signed body that is no event", "[]", signStripe("[]", SECRET)],
  ["a compressed body", body, { ...signStripe(body, SECRET), "content-encoding": "gzip" }],
] as [string, string, Record<string, string>][])(
  "refuses %s with a 400 that gives nothing away, counts, logs and keeps it",
  async (_, sent, headers) => {
    const { endpoint, url, pool, ukemi, lines } = await startStripe();
    const { status, text, response } = await post(endpoint, sent, headers);
    expect(status).toBe(400);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    const problem = JSON.parse(text) as Record<string, unknown>;
    const requestId = response.headers.get("x-request-id")!;
    expect(problem).toEqual({
      type: expect.stringContaining("invalid_webhook"),
      title: "The request was refused",
      status: 400,
      detail:
        "Check the signing secret and that the body is sent unchanged. The reason is in the server's log.",
      instance: `urn:request:${requestId}`,
      code: "invalid_webhook",
      request_id: requestId,
    });
    const logged = lines().filter((line) => line.request_id === requestId);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toMatchObject({
      level: "warn",
      status: 400,
      reason: expect.any(String),
      diagnosis: expect.any(String),
    });
    await ukemi.stop();
    const { rows } = await pool.query("select reason, diagnosis, request_id from ukemi.rejections");
    expect(rows).toEqual([
      { reason: logged[0]!.reason, diagnosis: logged[0]!.diagnosis, request_id: requestId },
    ]);
    expect(url).toBeDefined();
  },
);

test("tells the operator why: each diagnosis is the right one", async () => {
  const { endpoint, lines } = await startStripe();
  const pretty = sampleEvent("charge.succeeded");
  const compact = JSON.stringify(JSON.parse(pretty));
  await post(endpoint, body, {});
  await post(endpoint, body, signStripe(body, "whsec_wrong"));
  await post(endpoint, body, signStripe(body, SECRET, { timestamp: now() - 400 }));
  await post(endpoint, body, signStripe(body, SECRET, { timestamp: now() + 400 }));
  await post(endpoint, compact, signStripe(pretty, SECRET));
  const reasons = lines().flatMap((line) => (line.reason === undefined ? [] : [line.reason]));
  expect(reasons).toEqual(["signature_missing", "wrong_secret", "stale", "future", "body_altered"]);
});

test("stores an event of the wrong mode as skipped, and answers 204", async () => {
  const { url: database, pool } = await createDatabase();
  const server = await startTestServer({
    database,
    sources: { stripe: stripe({ secrets: [SECRET], livemode: true }) },
  });
  expect(await deliver(server.url, "evt_test_mode")).toMatchObject({ status: 204 });
  const { rows } = await pool.query("select status from ukemi.webhook_events");
  expect(rows).toEqual([{ status: "skipped" }]);
});

test("answers 404 for an unknown source, 405 for another method, 404 for no source", async () => {
  const { url, endpoint, lines } = await startStripe();
  expect((await post(`${url}/webhooks/paypal`, body, {})).status).toBe(404);
  expect(lines().at(-1)).toMatchObject({ source: "unknown", diagnosis: 'there is no source named "paypal"' });
  expect((await post(`${url}/webhooks/`, body, {})).status).toBe(404);
  expect((await post(`${url}/webhooks/stripe/more`, body, {})).status).toBe(404);
  expect((await post(`${url}/webhooks/__proto__`, body, {})).status).toBe(404);
  const get = await post(endpoint, "", {}, "GET");
  expect([get.status, get.response.headers.get("allow")]).toEqual([405, "POST"]);
  expect((await post(endpoint, body, {}, "PUT")).status).toBe(405);
  expect((await post(endpoint, "", {}, "HEAD")).status).toBe(405);
});

test("answers 413 for a body over the limit, declared or streamed", async () => {
  const { endpoint } = await startStripe({ bodyBytesMax: 10_000 });
  const huge = "x".repeat(10_001);
  expect((await post(endpoint, huge, signStripe(huge, SECRET))).status).toBe(413);
  const streamed = await fetch(endpoint, {
    method: "POST",
    headers: signStripe(huge, SECRET),
    body: new Blob([huge]).stream(),
    duplex: "half",
  });
  expect(streamed.status).toBe(413);
});

test("takes a body of exactly the limit", async () => {
  const { endpoint } = await startStripe({ bodyBytesMax: Buffer.byteLength(body) });
  expect((await post(endpoint, body, signStripe(body, SECRET))).status).toBe(204);
});

test("answers 403 where the sender's address is not on the source's list, before anything is read", async () => {
  const { url: database } = await createDatabase();
  const make = (allowedAddresses: string[]) => stripe({ secrets: [SECRET], allowedAddresses });
  const server = await startTestServer({
    database,
    sources: { far: make(["203.0.113.0/24"]), near: make(["127.0.0.0/8"]) },
  });
  expect((await post(`${server.url}/webhooks/far`, body, signStripe(body, SECRET))).status).toBe(403);
  expect((await post(`${server.url}/webhooks/near`, body, signStripe(body, SECRET))).status).toBe(204);
});

test("believes X-Forwarded-For from a trusted proxy only", async () => {
  const { url: database } = await createDatabase();
  const sources = { stripe: stripe({ secrets: [SECRET], allowedAddresses: ["203.0.113.7"] }) };
  const direct = await startTestServer({ database, sources });
  const proxied = await startTestServer({ database, sources, trustedProxies: ["127.0.0.1", "10.0.0.0/8"] });
  const send = async (url: string, forwarded: string) => {
    const headers = { ...signStripe(body, SECRET), "x-forwarded-for": forwarded };
    return (await post(`${url}/webhooks/stripe`, body, headers)).status;
  };
  expect(await send(direct.url, "203.0.113.7")).toBe(403);
  expect(await send(proxied.url, "203.0.113.7")).toBe(204);
  expect(await send(proxied.url, "203.0.113.7, 10.1.2.3")).toBe(204);
  expect(await send(proxied.url, "203.0.113.7, 198.51.100.1")).toBe(403); // what a caller wrote itself counts for nothing
  expect(await send(proxied.url, "nonsense")).toBe(403);
});

test("answers 429 with Retry-After to an address that causes too many refusals, and keeps no more of them", async () => {
  const { endpoint, lines } = await startStripe({ refusedPerMinute: 10 });
  const statuses: number[] = [];
  for (let index = 0; index < 15; index++) statuses.push((await post(endpoint, body, {})).status);
  expect(statuses.slice(0, 10)).toEqual(Array(10).fill(400));
  expect(statuses.slice(10)).toEqual(Array(5).fill(429));
  const { response } = await post(endpoint, body, {});
  expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
  const turnedAway = lines().filter((line) => line.result === "rejected_abuse");
  expect(turnedAway.map((line) => line.level)).toEqual(["warn", ...Array<string>(5).fill("debug")]);
});

test("does not let a forger shut out an honest sender behind the same address", async () => {
  const { endpoint, url, pool, ukemi } = await startStripe({ refusedPerMinute: 5 });
  const statuses: number[] = [];
  for (let index = 0; index < 10; index++) statuses.push((await post(endpoint, body, {})).status);
  expect(statuses.at(-1)).toBe(429);
  // nothing honest has ever come from here, and still a good signature opens the door
  expect((await deliver(url, "evt_honest")).status).toBe(204);
  expect((await post(endpoint, body, {})).status).toBe(400);
  await ukemi.stop();
  const { rows } = await pool.query("select count(*)::int as kept from ukemi.rejections");
  expect(rows).toEqual([{ kept: 6 }]);
});

test("reads no large body from an address that causes too many refusals", async () => {
  const { endpoint } = await startStripe({ refusedPerMinute: 1 });
  await post(endpoint, body, {});
  const large = JSON.stringify({ id: "evt_1", filler: "x".repeat(100_000) });
  expect((await post(endpoint, large, signStripe(large, SECRET))).status).toBe(429);
});

test("answers 503 when the bodies being read would take too much memory, and takes one body however large", async () => {
  const { endpoint, url } = await startStripe({ bodiesBytesMax: 1000 });
  expect((await deliver(url, "evt_alone")).status).toBe(204);
  const socket = open(url);
  socket.write(`POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\ncontent-length: 2000\r\n\r\n${"x".repeat(900)}`);
  await until(
    async () => (await post(endpoint, body, signStripe(body, SECRET))).status === 503,
    "the held body counts",
  );
  socket.destroy();
  await until(async () => (await deliver(url, "evt_after")).status === 204, "the room is free again");
});

test("answers 503 with Retry-After when too much waits for a commit", async () => {
  const { url: database, pool } = await createDatabase();
  const server = await startTestServer({ database, waitingRowsMax: 3, lanes: 1, commitDeadlineMs: 1500 });
  const holder = await pool.connect();
  await holder.query("begin; lock table ukemi.events in access exclusive mode");
  const told = await Promise.all(
    Array.from({ length: 10 }, (_, index) => deliver(server.url, `evt_${index}`)),
  );
  await holder.query("commit");
  holder.release();
  expect(told.every((answer) => answer.status === 503)).toBe(true);
  const codes = server.lines().map((line) => line.reason);
  expect(codes.filter((code) => code === "overloaded")).toHaveLength(7);
  expect(codes.filter((code) => code === "store_unavailable")).toHaveLength(3);
  expect((await deliver(server.url, "evt_0")).status).toBe(204);
});

test("receives from several kinds of source side by side", async () => {
  const { url: database, pool } = await createDatabase();
  const secret = "a shared secret of some length";
  const server = await startTestServer({
    database,
    sources: {
      stripe: stripe({ secrets: [SECRET] }),
      github: hmac({
        secrets: [secret],
        header: "x-hub-signature-256",
        prefix: "sha256=",
        id: { header: "x-github-delivery" },
        type: { header: "x-github-event" },
      }),
    },
  });
  const { signHmac } = await import("../../src/testing/sign.ts");
  const headers = {
    ...signHmac('{"a":1}', secret, { header: "x-hub-signature-256", prefix: "sha256=" }),
    "x-github-delivery": "d1",
    "x-github-event": "push",
  };
  expect((await post(`${server.url}/webhooks/github`, '{"a":1}', headers)).status).toBe(204);
  expect((await deliver(server.url, "d1")).status).toBe(204);
  const { rows } = await pool.query("select source, event_id from ukemi.events order by 1");
  expect(rows).toEqual([
    { source: "github", event_id: "d1" },
    { source: "stripe", event_id: "d1" },
  ]);
});
