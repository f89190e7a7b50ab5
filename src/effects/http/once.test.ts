// One call is one request on the wire, also where a kept connection ends just when it is used again.
import type { Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { held, type Held } from "../../../test/support/held.ts";
import { startPeer, startRawPeer } from "../../../test/support/http-peer.ts";
import type { AttemptResult } from "../attempt.ts";
import { createHttpCaller, type HttpCaller } from "./call.ts";
import type { HttpIntent } from "./intent.ts";

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function calling(url: string, stop: () => Promise<void>, connectionsMax = 1) {
  const caller: HttpCaller = createHttpCaller({ allowedDestinations: [url], connectionsMax });
  stops.push(caller.close, stop);
  const limits = { timeoutMs: 60_000, signal: new AbortController().signal };
  return (idempotencyKey: string, { method = "POST", idempotent = true }: Partial<HttpIntent> = {}) =>
    caller.call({ url, method, idempotent, idempotencyKey }, limits);
}

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const keyOf = (piece: string) => /idempotency-key: (\S+)/.exec(piece)?.[1] ?? "none";

test("a kept connection is used again", async () => {
  const peer = await startPeer((response) => response.end());
  const call = calling(peer.url, peer.stop);
  for (const key of ["k1", "k2", "k3"]) expect(await call(key)).toMatchObject({ is: "done" });
  expect(peer.connections()).toBe(1);
});

test("what is not idempotent gets a connection of its own, so that one the peer has just closed does no harm", async () => {
  const peer = await startPeer((response, { socket }) => {
    response.on("finish", () => socket.destroy()).end();
  });
  const call = calling(peer.url, peer.stop);
  for (const key of ["k1", "k2", "k3"])
    expect(await call(key, { idempotent: false })).toMatchObject({ is: "done" });
  expect(peer.seen.map(({ key }) => key)).toEqual(["k1", "k2", "k3"]);
  expect(peer.connections()).toBe(3);
});

test("a kept connection that the peer closes in between is used no more", async () => {
  let ends: Held<void>[] = [];
  const peer = await startPeer((response, { socket }) => {
    const end = held<void>();
    ends.push(end);
    socket.on("close", end.resolve);
    response.end();
  });
  const call = calling(peer.url, peer.stop);
  for (const key of ["k1", "k2", "k3"]) {
    expect(await call(key)).toMatchObject({ is: "done" });
    peer.drop();
    await Promise.all(ends.map(({ promise }) => promise));
    ends = [];
    // a turn of the loop, in which undici sees it
    await new Promise(setImmediate);
  }
  expect(peer.seen.map(({ key }) => key)).toEqual(["k1", "k2", "k3"]);
  expect(peer.connections()).toBe(3);
});

test.each(["POST", "GET"] as const)(
  "a %s on a kept connection that ends unanswered is not sent again",
  async (method) => {
    const keys: string[] = [];
    const peer = await startRawPeer((piece, socket) => {
      keys.push(keyOf(piece));
      if (keys.length === 1) socket.write(OK);
      else socket.resetAndDestroy();
    });
    const call = calling(peer.url, peer.stop);
    expect(await call("k1", { method })).toMatchObject({ is: "done" });
    expect(await call("k2", { method })).toMatchObject({ is: "uncertain" });
    expect(keys).toEqual(["k1", "k2"]);
    expect(peer.connections()).toBe(1);
  },
);

test("by the peer's own log nothing arrives twice, whatever moment it closes in", async () => {
  const keys: string[] = [];
  /** After its answer to this socket: at once, in one of the next turns of the loop, by a reset, or not at all. */
  const endings: ((socket: Socket) => unknown)[] = [
    (socket) => socket.end(),
    (socket) => socket.destroy(),
    (socket) => socket.resetAndDestroy(),
    (socket) => setImmediate(() => socket.end()),
    (socket) => setImmediate(() => setImmediate(() => socket.resetAndDestroy())),
    (socket) => socket.once("data", () => socket.resetAndDestroy()),
    () => {},
  ];
  const peer = await startRawPeer((piece, socket) => {
    keys.push(keyOf(piece));
    if (!socket.writable) return;
    const end = endings[keys.length % endings.length]!;
    socket.write(OK, () => end(socket));
  });
  const call = calling(peer.url, peer.stop, 4);
  const results = new Map<string, AttemptResult["is"]>();
  for (let round = 0; round < 150; round += 1) {
    const batch = [0, 1, 2].map((index) => `k${round}-${index}`);
    await Promise.all(
      batch.map(async (key) => results.set(key, (await call(key, { idempotent: round % 2 === 0 })).is)),
    );
  }

  expect(new Set(keys).size).toBe(keys.length);
  for (const [key, is] of results) {
    expect(is).toMatch(/^(?:done|again|uncertain)$/);
    if (is === "done") expect(keys).toContain(key);
    if (is === "again") expect(keys).not.toContain(key);
  }
  expect([...results.values()].filter((is) => is === "done").length).toBeGreaterThan(100);
});
