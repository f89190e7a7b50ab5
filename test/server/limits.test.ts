// Callers that mean harm or are broken: slow, endless, malformed. Each is answered or cut, in time and with bounded memory.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { deliver } from "../support/deliver.ts";
import { startTestServer } from "../support/in-process.ts";
import { exchange, open, readToEnd } from "../support/raw.ts";

async function start() {
  const { url: database } = await createDatabase();
  return startTestServer({ database, headTimeoutMs: 500, requestTimeoutMs: 1000, bodyBytesMax: 4096 });
}

const HEAD = "POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\n";

test("cuts off a head that does not arrive in time with 408, and goes on serving", async () => {
  const server = await start();
  const socket = open(server.url);
  socket.write("POST /webhooks/stripe HTTP/1.1\r\nhost: x\r\nx-slow: ");
  const { statuses, text } = await readToEnd(socket);
  expect(statuses).toEqual([408]);
  expect(text).toContain('"code":"request_timeout"');
  expect((await deliver(server.url, "evt_1")).status).toBe(204);
});

test("cuts off a body that does not arrive in time with 408", async () => {
  const server = await start();
  const socket = open(server.url);
  socket.write(`${HEAD}content-length: 1000\r\n\r\nx`);
  expect((await readToEnd(socket)).statuses).toEqual([408]);
});

test("cuts off a body that drips for ever", async () => {
  const server = await start();
  const socket = open(server.url);
  socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n`);
  const drip = setInterval(() => socket.write("1\r\nx\r\n"), 50);
  const { statuses } = await readToEnd(socket);
  clearInterval(drip);
  expect(statuses).toEqual([408]);
});

test("answers a never-ending fast body with 413, then cuts it, without keeping it in memory", async () => {
  const server = await start();
  const socket = open(server.url);
  socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n`);
  const chunk = `10000\r\n${"x".repeat(65_536)}\r\n`;
  let sent = 0;
  const before = process.memoryUsage().rss;
  const pump = () => {
    while (!socket.destroyed && socket.write(chunk)) sent += chunk.length;
    if (!socket.destroyed) socket.once("drain", pump);
  };
  pump();
  const { statuses } = await readToEnd(socket);
  expect(statuses[0]).toBe(413);
  console.log(`sent ${Math.round(sent / 2 ** 20)} MiB before the cut`);
  expect(process.memoryUsage().rss - before).toBeLessThan(200 * 2 ** 20);
});

test("holds 300 slow callers and still serves an honest one", async () => {
  const server = await start();
  const slow = Array.from({ length: 300 }, () => {
    const socket = open(server.url);
    socket.write(HEAD);
    return readToEnd(socket);
  });
  const told = await deliver(server.url, "evt_1");
  expect(told.status).toBe(204);
  const answers = await Promise.all(slow);
  expect(new Set(answers.flatMap((answer) => answer.statuses))).toEqual(new Set([408]));
});

test.each([
  ["rubbish", "\u0000\u0001rubbish\r\n\r\n", 400],
  ["a huge header", `${HEAD}x-big: ${"x".repeat(20_000)}\r\n\r\n`, 431],
  ["two lengths", `${HEAD}content-length: 1\r\ncontent-length: 2\r\n\r\nxx`, 400],
  [
    "a length and chunks (smuggling)",
    `${HEAD}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  ["a negative length", `${HEAD}content-length: -1\r\n\r\n`, 400],
  ["a bad chunk", `${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n`, 400],
  ["no host", "POST /webhooks/stripe HTTP/1.1\r\n\r\n", 400],
])("answers %s with a problem document", async (_, request, status) => {
  const server = await start();
  const answer = await exchange(server.url, request);
  expect(answer.statuses).toEqual([status]);
});

test("closes connections beyond its limit at the door", async () => {
  const { url: database } = await createDatabase();
  const server = await startTestServer({ database, connectionsMax: 5 });
  const held = Array.from({ length: 5 }, () => open(server.url));
  await Promise.all(held.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
  expect((await exchange(server.url, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")).statuses).toEqual([]);
  for (const socket of held) socket.destroy();
});

test("notices a caller that goes away in mid-body", async () => {
  const server = await start();
  const socket = open(server.url);
  socket.write(`${HEAD}content-length: 1000\r\n\r\nx`);
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.destroy();
  expect((await deliver(server.url, "evt_1")).status).toBe(204);
  expect(server.lines().filter((line) => line.level === "error")).toEqual([]);
});
