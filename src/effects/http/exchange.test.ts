import { Agent, type Dispatcher } from "undici";
import { expect, test } from "vitest";
import { startRawPeer } from "../../../test/support/http-peer.ts";
import { exchange, follow, GivenUp, type Ending } from "./exchange.ts";

function controller() {
  const aborts: Error[] = [];
  const control = { aborted: false, paused: false, reason: null, pause() {}, resume() {} };
  return {
    aborts,
    control: { ...control, abort: (why) => void aborts.push(why) } as Dispatcher.DispatchController,
  };
}

function following(mayBegin = () => true) {
  const endings: Ending[] = [];
  return { endings, ...follow({ answerBytesMax: 100, mayBegin }, (ending) => endings.push(ending)) };
}

test("a request that undici starts a second time is stopped before it is written, and is uncertain", () => {
  const { handler, endings } = following();
  const [first, second] = [controller(), controller()];
  handler.onRequestStart?.(first.control, undefined);
  expect(endings).toEqual([]);
  handler.onRequestStart?.(second.control, undefined);
  expect(second.aborts).toHaveLength(1);
  expect(endings).toMatchObject([{ is: "unanswered", why: { after: "resend" } }]);
});

test("a request that was given up before it started is stopped when it starts", () => {
  const { handler, giveUp, endings } = following();
  const { control, aborts } = controller();
  giveUp(new GivenUp("timeout"));
  handler.onRequestStart?.(control, undefined);
  expect(aborts).toHaveLength(1);
  expect(endings).toMatchObject([{ is: "unsent", why: { after: "timeout" } }]);
});

test("a request that may not be made any more when it is connected is stopped before it is written", () => {
  const { handler, endings } = following(() => false);
  const { control, aborts } = controller();
  handler.onRequestStart?.(control, undefined);
  expect(aborts).toHaveLength(1);
  expect(endings).toMatchObject([{ is: "unsent", why: { after: "signal" } }]);
});

test("it ends once, by what came first", () => {
  const { handler, giveUp, endings } = following();
  const { control } = controller();
  handler.onRequestStart?.(control, undefined);
  handler.onResponseStart?.(control, 103, {});
  handler.onResponseStart?.(control, 200, {});
  handler.onResponseData?.(control, Buffer.from("a"));
  handler.onResponseEnd?.(control, {});
  handler.onResponseError?.(control, new Error("late"));
  giveUp(new GivenUp("signal"));
  expect(endings).toMatchObject([{ is: "answered", answer: { status: 200, ended: "whole" } }]);
});

test("an early hint is no answer", () => {
  const { handler, endings } = following();
  const { control } = controller();
  handler.onRequestStart?.(control, undefined);
  handler.onResponseStart?.(control, 103, {});
  handler.onResponseError?.(control, new Error("lost"));
  expect(endings).toMatchObject([{ is: "unanswered" }]);
});

test("where undici would send pipelined requests again after a lost connection, none of them is", async () => {
  const arrived: string[] = [];
  const peer = await startRawPeer((piece, socket) => {
    for (const [, path = ""] of piece.matchAll(/GET (\S+)/g)) arrived.push(path);
    // the first makes the connection a used one; then all have come, and none is answered
    if (arrived.length === 1) socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    else if (arrived.length === 5) socket.destroy();
    else if (arrived.length > 5) socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  });
  const agent = new Agent({ connections: 1, pipelining: 10 });
  const limits = { timeoutMs: 60_000, signal: new AbortController().signal, answerBytesMax: 100 };
  const send = (path: string) =>
    exchange(agent, { origin: peer.url, path, method: "GET", blocking: false }, limits);

  expect(await send("/0")).toMatchObject({ is: "answered" });
  const endings = await Promise.all(["/1", "/2", "/3", "/4"].map(send));
  await agent.destroy();
  await peer.stop();
  expect(endings.map(({ is }) => is)).toEqual(Array.from({ length: 4 }, () => "unanswered"));
  expect(arrived).toEqual(["/0", "/1", "/2", "/3", "/4"]);
});
