import type { Dispatcher } from "undici";
import { expect, test } from "vitest";
import { follow, GivenUp, type Ending } from "./exchange.ts";

function controller() {
  const aborts: Error[] = [];
  const control = { aborted: false, paused: false, reason: null, pause() {}, resume() {} };
  return {
    aborts,
    control: { ...control, abort: (why) => void aborts.push(why) } as Dispatcher.DispatchController,
  };
}

function following() {
  const endings: Ending[] = [];
  return { endings, ...follow(100, (ending) => endings.push(ending)) };
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
