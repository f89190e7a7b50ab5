import type { LookupAddress } from "node:dns";
import { afterEach, beforeEach, expect, test } from "vitest";
import { certificate } from "../../../test/support/certificate.ts";
import { startPeer, type HttpPeer } from "../../../test/support/http-peer.ts";
import { createHttpCaller, type HttpCaller, type HttpCallerOptions } from "./call.ts";
import { lookupBy, Refusal, type Resolve } from "./guard.ts";
import { isPublicAddress } from "./public-address.ts";

let peer: HttpPeer;
let caller: HttpCaller | undefined;
beforeEach(async () => void (peer = await startPeer((response) => response.end(), certificate)));
afterEach(async () => {
  await caller?.close();
  await peer.stop();
});

function call(url: string, options: HttpCallerOptions = {}) {
  caller = createHttpCaller(options);
  const limits = { timeoutMs: 60_000, signal: new AbortController().signal };
  return caller.call({ url, idempotent: false, idempotencyKey: "k1" }, limits);
}

const addresses = (...list: string[]): LookupAddress[] =>
  list.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));

/** Answers with the next of the lists each time, and with the last for ever. */
function resolving(...lists: string[][]) {
  const asked: string[] = [];
  const resolve: Resolve = (hostname, _options, done) => {
    asked.push(hostname);
    queueMicrotask(() => done(null, addresses(...lists[Math.min(asked.length, lists.length) - 1]!)));
  };
  return { asked, resolve };
}

test.each([
  "127.0.0.1",
  "127.1",
  "2130706433",
  "0x7f000001",
  "0177.0.0.1",
  "①②⑦.0.0.1",
  "0.0.0.0",
  "localhost",
  "[::1]",
  "[::]",
  "[::ffff:127.0.0.1]",
  "[::127.0.0.1]",
  "169.254.169.254",
  "[fd00:ec2::254]",
])("no connection is made to %s", async (host) => {
  const result = await call(`https://${host}:${peer.port}/`, { ca: certificate.cert });
  expect(result).toMatchObject({ is: "failed", fault: { class: "HTTP not allowed" } });
  expect(JSON.stringify(result)).toMatch(/allowedDestinations/);
  expect(peer.connections()).toBe(0);
});

test.each([
  ["127.0.0.1"],
  ["8.8.8.8", "127.0.0.1"],
  ["::ffff:127.0.0.1"],
  ["2606:4700::1", "::1"],
  ["10.0.0.1"],
])("no connection is made by a name that leads to %s %s", async (...list) => {
  const { resolve } = resolving(list);
  const result = await call(`https://api.test:${peer.port}/`, { ca: certificate.cert, resolve });
  expect(result).toMatchObject({ is: "failed", fault: { class: "HTTP not allowed" } });
  expect(peer.connections()).toBe(0);
});

test("nothing is called without TLS, not even looked up, unless it is allowed", async () => {
  const { asked, resolve } = resolving(["8.8.8.8"]);
  expect(await call("http://api.test/", { resolve })).toMatchObject({
    is: "failed",
    fault: { class: "HTTP not allowed", message: expect.stringMatching(/without TLS/) },
  });
  expect(asked).toEqual([]);
});

test("what is allowed is called, wherever its name leads", async () => {
  const { resolve } = resolving(["127.0.0.1"]);
  const allowedDestinations = [peer.url];
  expect(await call(peer.url, { resolve, allowedDestinations, ca: certificate.cert })).toMatchObject({
    is: "done",
  });
  expect(peer.seen).toMatchObject([{ key: "k1", headers: { host: `api.test:${peer.port}` } }]);
});

test("an allowed origin does not open another port of the same host", async () => {
  const { resolve } = resolving(["127.0.0.1"]);
  const allowedDestinations = [`https://api.test:${peer.port + 1}`];
  expect(await call(peer.url, { resolve, allowedDestinations })).toMatchObject({ is: "failed" });
  expect(peer.connections()).toBe(0);
});

test("a name that changes between check and connection gains nothing: it is asked once, and that answer is used", async () => {
  const { asked, resolve } = resolving(["8.8.8.8"], ["127.0.0.1"]);
  const lookup = lookupBy(resolve, isPublicAddress);
  const look = (all: boolean) =>
    new Promise((done) => lookup("api.test", { all }, (error, found) => done(error ?? found)));

  expect(await look(true)).toEqual(addresses("8.8.8.8"));
  expect(asked).toHaveLength(1);
  expect(await look(true)).toBeInstanceOf(Refusal);
  expect(asked).toHaveLength(2);
});

test("one address is handed over where one is asked for, after all were checked", async () => {
  const look = (...list: string[]) =>
    new Promise((done) =>
      lookupBy(resolving(list).resolve, isPublicAddress)("api.test", {}, (error, ...found) =>
        done(error ?? found),
      ),
    );
  expect(await look("8.8.8.8", "1.1.1.1")).toEqual(["8.8.8.8", 4]);
  expect(await look("8.8.8.8", "192.168.0.1")).toBeInstanceOf(Refusal);
  expect(await look()).toBeInstanceOf(Refusal);
});
