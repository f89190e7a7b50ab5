import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { certificate } from "../../../test/support/certificate.ts";
import { held } from "../../../test/support/held.ts";
import { startPeer, startRawPeer } from "../../../test/support/http-peer.ts";
import { createHttpCaller, type HttpCaller, type HttpCallerOptions } from "./call.ts";

const stops: (() => Promise<void>)[] = [];
let caller: HttpCaller | undefined;
afterEach(async () => {
  vi.useRealTimers();
  await caller?.close();
  await Promise.all(stops.splice(0).map((stop) => stop()));
});

function kept<Peer extends { stop(): Promise<void> }>(peer: Peer): Peer {
  stops.push(peer.stop);
  return peer;
}

interface Asking extends HttpCallerOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

function call(
  url: string,
  { signal = new AbortController().signal, timeoutMs = 60_000, ...options }: Asking = {},
) {
  caller = createHttpCaller({ allowedDestinations: [new URL(url).origin], ...options });
  return caller.call(
    { url, idempotent: false, idempotencyKey: "k1", body: "hunter2" },
    { signal, timeoutMs },
  );
}

const toLoopback: HttpCallerOptions["resolve"] = (_hostname, _options, done) =>
  done(null, [{ address: "127.0.0.1", family: 4 }]);

describe("before a connection is there, nothing was sent, and it is tried again", () => {
  test("nobody listens", async () => {
    const peer = await startPeer(() => {});
    await peer.stop();
    const result = await call(peer.url);
    expect(result).toMatchObject({ is: "again", fault: { class: "HTTP ECONNREFUSED" } });
    expect(JSON.stringify(result)).not.toContain("127.0.0.1");
  });

  test.each(["ENOTFOUND", "EAI_AGAIN"])("the name is not found (%s)", async (code) => {
    const error = Object.assign(new Error(`getaddrinfo ${code} api.test`), { code });
    const resolve: HttpCallerOptions["resolve"] = (_hostname, _options, done) => done(error, []);
    expect(await call("https://api.test/", { resolve, allowedDestinations: [] })).toMatchObject({
      is: "again",
      fault: { class: `HTTP ${code}` },
    });
  });

  test("the certificate is not trusted", async () => {
    const peer = kept(await startPeer((response) => response.end(), certificate));
    expect(await call(peer.url, { resolve: toLoopback })).toMatchObject({
      is: "again",
      fault: { class: "HTTP DEPTH_ZERO_SELF_SIGNED_CERT" },
    });
    expect(peer.seen).toEqual([]);
  });

  test("the certificate is for another name", async () => {
    const peer = kept(await startPeer((response) => response.end(), certificate));
    const url = `https://other.test:${peer.port}`;
    expect(await call(url, { resolve: toLoopback, ca: certificate.cert })).toMatchObject({
      is: "again",
      fault: { class: "HTTP ERR_TLS_CERT_ALTNAME_INVALID" },
    });
    expect(peer.seen).toEqual([]);
  });

  test("the peer speaks no TLS", async () => {
    const peer = kept(await startPeer((response) => response.end()));
    const url = `https://127.0.0.1:${peer.port}`;
    expect(await call(url)).toMatchObject({
      is: "again",
      fault: { message: expect.stringMatching(/Nothing was sent/) },
    });
    expect(peer.seen).toEqual([]);
  });

  test("the peer takes the connection, and drops it before TLS is set up", async () => {
    const peer = kept(await startRawPeer((_piece, socket) => socket.destroy()));
    const url = `https://127.0.0.1:${peer.port}`;
    expect(await call(url)).toMatchObject({
      is: "again",
      fault: { message: expect.stringMatching(/Nothing was sent/) },
    });
  });

  test("it is given up while the name is looked up, and is not sent when that ends", async () => {
    const peer = kept(await startPeer((response) => response.end()));
    const asked = held<() => void>();
    const stopping = new AbortController();
    const result = call(`http://api.test:${peer.port}`, {
      signal: stopping.signal,
      connectionsMax: 1,
      resolve(hostname, options, done) {
        const answer = () => toLoopback(hostname, options, done);
        if (stopping.signal.aborted) answer();
        else asked.resolve(answer);
      },
    });
    const answer = await asked.promise;
    stopping.abort();
    expect(await result).toMatchObject({ is: "again", fault: { class: "HTTP aborted" } });
    answer();
    const limits = { timeoutMs: 60_000, signal: new AbortController().signal };
    const next = { url: `http://api.test:${peer.port}`, idempotent: false, idempotencyKey: "k2" };
    expect(await caller?.call(next, limits)).toMatchObject({ is: "done" });
    expect(peer.seen.map(({ key }) => key)).toEqual(["k2"]);
  });

  test("it was given up before it began", async () => {
    const peer = kept(await startPeer((response) => response.end()));
    expect(await call(peer.url, { signal: AbortSignal.abort() })).toMatchObject({ is: "again" });
    expect(peer.connections()).toBe(0);
  });
});

describe("after it was sent, nobody can tell", () => {
  test.each([
    ["when the peer closes without a word", "", "HTTP UND_ERR_SOCKET"],
    ["when the answer breaks off in its head", "HTTP/1.1 200 OK\r\ncontent-", "HTTP UND_ERR_SOCKET"],
    ["when the answer is no HTTP", "220 smtp.example.com ESMTP\r\n", "HTTP invalid answer"],
    ["when the body breaks off", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12", "HTTP 200"],
    ["when a chunk breaks off", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12", "HTTP 200"],
    [
      "when the head does not end",
      `HTTP/1.1 200 OK\r\nx-a: ${"a".repeat(40_000)}`,
      "HTTP UND_ERR_HEADERS_OVERFLOW",
    ],
    [
      "when the peer wants another protocol",
      "HTTP/1.1 101 S\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
      "HTTP UND_ERR_SOCKET",
    ],
  ])("%s", async (_, text, name) => {
    let reached = "";
    const peer = kept(
      await startRawPeer((piece, socket) => {
        reached += piece;
        if (reached.endsWith("hunter2")) socket.end(text);
      }),
    );
    const result = await call(peer.url);
    expect(result).toMatchObject({ is: "uncertain", fault: { class: name } });
    expect(JSON.stringify(result)).not.toMatch(/hunter2|127\.0\.0/);
    expect(reached.match(/k1/g)).toHaveLength(1);
  });

  test("when the connection is cut before the request was read", async () => {
    const peer = kept(await startRawPeer((_piece, socket) => socket.resetAndDestroy()));
    expect(await call(peer.url)).toMatchObject({ is: "uncertain", fault: { class: "HTTP ECONNRESET" } });
    expect(peer.connections()).toBe(1);
  });

  test("when the connection is cut after the request was read", async () => {
    const peer = kept(await startPeer((_response, request) => request.socket.destroy()));
    expect(await call(peer.url)).toMatchObject({ is: "uncertain" });
    expect(peer.seen).toHaveLength(1);
  });

  test("when it is given up", async () => {
    const peer = kept(await startPeer(() => {}));
    const stopping = new AbortController();
    const result = call(peer.url, { signal: stopping.signal });
    await peer.saw(1);
    stopping.abort();
    expect(await result).toMatchObject({ is: "uncertain", fault: { class: "HTTP aborted" } });
    expect(peer.seen).toHaveLength(1);
  });
});

describe("when the time is over", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));

  test("and no answer has begun, it is uncertain", async () => {
    const peer = kept(await startPeer(() => {}));
    const result = call(peer.url, { timeoutMs: 5000 });
    await peer.saw(1);
    vi.advanceTimersByTime(5000);
    expect(await result).toMatchObject({ is: "uncertain", fault: { class: "HTTP timeout" } });
  });

  test.each([
    ["its head drips", "HTTP/1.1 200 OK\r\n", "x: y\r\n", "HTTP timeout"],
    ["its body drips", "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n", "a", "HTTP 200"],
  ])("and %s, it is uncertain, however busy it looks", async (_, head, drop, name) => {
    const dripping = held<(text: string) => Promise<void>>();
    const peer = kept(
      await startRawPeer((_piece, socket) =>
        dripping.resolve((text) => new Promise((sent) => socket.write(text, () => sent()))),
      ),
    );
    let isOver = false;
    const result = call(peer.url, { timeoutMs: 5000 }).finally(() => (isOver = true));
    const drip = await dripping.promise;
    await drip(head);
    for (let second = 1; second < 5; second += 1) {
      await drip(drop);
      // a turn of the loop, in which the drop is read
      await new Promise(setImmediate);
      vi.advanceTimersByTime(1000);
    }
    expect(isOver).toBe(false);
    vi.advanceTimersByTime(1000);
    expect(await result).toMatchObject({ is: "uncertain", fault: { class: name } });
  });

  test("and there was no free connection, nothing was sent", async () => {
    const peer = kept(await startPeer(() => {}));
    const first = call(peer.url, { connectionsMax: 1 });
    await peer.saw(1);
    const limits = { timeoutMs: 1000, signal: new AbortController().signal };
    const second = caller?.call({ url: peer.url, idempotent: false, idempotencyKey: "k2" }, limits);
    vi.advanceTimersByTime(1000);
    expect(await second).toMatchObject({ is: "again", fault: { class: "HTTP timeout" } });
    vi.advanceTimersByTime(59_000);
    expect(await first).toMatchObject({ is: "uncertain" });
    expect(peer.seen.map(({ key }) => key)).toEqual(["k1"]);
  });

  test("before the connection is there, nothing was sent", async () => {
    const asked = held<void>();
    const result = call("https://api.test/", { timeoutMs: 5000, resolve: () => asked.resolve() });
    await asked.promise;
    vi.advanceTimersByTime(5000);
    expect(await result).toMatchObject({ is: "again", fault: { class: "HTTP timeout" } });
  });
});
