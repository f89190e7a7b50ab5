import { afterEach, describe, expect, test } from "vitest";
import { held } from "../../../test/support/held.ts";
import { startPeer, type HttpPeer, type PeerAnswer } from "../../../test/support/http-peer.ts";
import { createHttpCaller, type HttpCaller, type HttpCallerOptions, type KeyedHttpIntent } from "./call.ts";

const peers: HttpPeer[] = [];
let caller: HttpCaller | undefined;
afterEach(async () => {
  await caller?.close();
  await Promise.all(peers.splice(0).map((peer) => peer.stop()));
});

async function answering(answer: PeerAnswer, options: HttpCallerOptions = {}) {
  const peer = await startPeer(answer);
  peers.push(peer);
  const { call, close } = (caller = createHttpCaller({ allowedDestinations: [peer.url], ...options }));
  const limits = { timeoutMs: 60_000, signal: new AbortController().signal };
  return {
    peer,
    close,
    call: (intent: Partial<KeyedHttpIntent> = {}) =>
      call({ url: `${peer.url}/v1/charges?a=1`, idempotent: false, idempotencyKey: "k1", ...intent }, limits),
  };
}

test("sends what it was given, once, with the key", async () => {
  const { peer, call } = await answering((response) =>
    response
      .writeHead(201, { "content-type": "application/json", "request-id": "req_1" })
      .end('{"id":"ch_1"}'),
  );
  const headers = {
    "content-type": "application/json",
    authorization: "Bearer t",
    "Idempotency-Key": "other",
  };
  expect(await call({ headers, body: '{"amount":"ü"}' })).toEqual({
    is: "done",
    receipt: {
      status: 201,
      headers: { "request-id": "req_1" },
      contentType: "application/json",
      body: '{"id":"ch_1"}',
    },
  });
  expect(peer.seen).toMatchObject([
    {
      method: "POST",
      path: "/v1/charges?a=1",
      body: '{"amount":"ü"}',
      key: "k1",
      headers: { authorization: "Bearer t", "user-agent": expect.stringMatching(/^ukemi\//) },
    },
  ]);
});

test("the key is sent in the header that the peer wants, the same on every try", async () => {
  const { peer, call } = await answering((response) => response.writeHead(503).end());
  for (const _ of [1, 2, 3]) await call({ idempotencyHeader: "x-request-key", idempotencyKey: "k7" });
  expect(peer.seen.map(({ headers }) => headers["x-request-key"])).toEqual(["k7", "k7", "k7"]);
  expect(peer.seen[0]?.key).toBeUndefined();
});

test.each(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const)("makes %s calls", async (method) => {
  const { peer, call } = await answering((response) => response.end(method === "HEAD" ? undefined : "ok"));
  expect(await call({ method })).toMatchObject({ is: "done", receipt: { status: 200 } });
  expect(peer.seen).toMatchObject([{ method, key: "k1" }]);
});

test.each([
  [200, "done"],
  [302, "failed"],
  [401, "blocked"],
  [404, "failed"],
  [409, "failed"],
  [410, "failed"],
  [429, "again"],
  [501, "failed"],
  [503, "again"],
])("%d is %s, after one request", async (status, is) => {
  const { peer, call } = await answering((response) => response.writeHead(status).end());
  expect(await call()).toMatchObject({ is });
  expect(peer.seen).toHaveLength(1);
});

test.each([
  ["7", "Wed, 21 Oct 2015 07:28:00 GMT"],
  ["Wed, 21 Oct 2015 07:28:07 GMT", "Wed, 21 Oct 2015 07:28:00 GMT"],
])("hands on the pause that Retry-After: %s asks for", async (retryAfter, date) => {
  const { call } = await answering((response) => {
    response.sendDate = false;
    response.writeHead(429, { "retry-after": retryAfter, date }).end();
  });
  expect(await call()).toMatchObject({ is: "again", pauseMs: 7000 });
});

test("does not follow a redirect, and says only to which host it would lead", async () => {
  const other = await startPeer((response) => response.end());
  peers.push(other);
  const location = `${other.url}/hunter2`;
  const { call } = await answering((response) => response.writeHead(307, { location }).end(), {
    allowedDestinations: ["127.0.0.1"],
  });
  const result = await call();
  expect(result).toMatchObject({ is: "failed", fault: { class: "HTTP 307" } });
  expect(JSON.stringify(result)).not.toContain("hunter2");
  expect(other.connections()).toBe(0);
});

describe("an answer that is too long", () => {
  const MIB = Buffer.alloc(1024 * 1024, "a");

  test("is done, the beginning of it is kept, and the next call is as good as the first", async () => {
    const { peer, call } = await answering((response) => {
      response.writeHead(200, { "content-type": "text/plain", "content-length": 10 * MIB.length });
      for (let sent = 0; sent < 10; sent += 1) response.write(MIB);
      response.end();
    });
    for (const idempotencyKey of ["k1", "k2"]) {
      const result = await call({ idempotencyKey });
      expect(result).toMatchObject({ is: "done", receipt: { status: 200, bodyCut: true } });
      expect(result.is === "done" && result.receipt.body).toBe("a".repeat(64 * 1024));
    }
    expect(peer.seen.map(({ key }) => key)).toEqual(["k1", "k2"]);
  });

  test("and never ends is done too: the connection is dropped", async () => {
    const dropped = held<void>();
    const { call } = await answering((response) => {
      response.writeHead(200, { "content-type": "text/plain" });
      const more = () => void response.write(MIB);
      response.on("drain", more).on("close", dropped.resolve);
      more();
    });
    expect(await call()).toMatchObject({ is: "done", receipt: { bodyCut: true } });
    await dropped.promise;
  });

  test("of just the length that is kept is not cut", async () => {
    const { call } = await answering(
      (response) => response.writeHead(200, { "content-type": "text/plain" }).end("12345"),
      { answerBytesMax: 5 },
    );
    expect(await call()).toEqual({
      is: "done",
      receipt: { status: 200, contentType: "text/plain", body: "12345" },
    });
  });
});

test.each([
  ["a URL that is none", { url: "api.example.com" }, "HTTP invalid URL"],
  ["a scheme that is not HTTP", { url: "ftp://api.example.com/" }, "HTTP invalid URL"],
  ["a password in the URL", { url: "https://u:hunter2@api.example.com/" }, "HTTP invalid URL"],
  ["a header that cannot be sent", { headers: { "x-a": "hunter2\r\nx-b: c" } }, "HTTP UND_ERR_INVALID_ARG"],
  ["a key that cannot be sent", { idempotencyKey: "hunter2\n" }, "HTTP UND_ERR_INVALID_ARG"],
])("%s fails for good, and nothing is sent", async (_, intent, name) => {
  const { peer, call } = await answering((response) => response.end());
  const result = await call(intent);
  expect(result).toMatchObject({ is: "failed", fault: { class: name } });
  expect(JSON.stringify(result)).not.toContain("hunter2");
  expect(peer.connections()).toBe(0);
});

test("more calls than there may be connections wait for their turn", async () => {
  const { peer, call } = await answering((response) => response.end(), { connectionsMax: 2 });
  const keys = Array.from({ length: 20 }, (_, index) => `k${index}`);
  const results = await Promise.all(keys.map((idempotencyKey) => call({ idempotencyKey, idempotent: true })));
  expect(results.every(({ is }) => is === "done")).toBe(true);
  expect(peer.seen).toHaveLength(keys.length);
  expect(new Set(peer.seen.map(({ key }) => key))).toEqual(new Set(keys));
  expect(peer.connections()).toBe(2);
});

test("closing lets a running call end, and makes no new ones", async () => {
  const answers = held<() => void>();
  const { peer, call, close } = await answering((response) => answers.resolve(() => response.end()));
  const running = call();
  const answer = await answers.promise;
  const closed = close();
  answer();
  expect(await running).toMatchObject({ is: "done" });
  await closed;
  expect(await call()).toMatchObject({
    is: "again",
    fault: { message: expect.stringMatching(/Nothing was sent/) },
  });
  expect(peer.seen).toHaveLength(1);
});
