import { expect, test } from "vitest";
import type { NewEvent } from "../storage/events.ts";
import { readHandler } from "./handler.ts";
import { takersOf } from "./offer.ts";

const event = (type: string, changes: Partial<NewEvent> = {}) =>
  ({ source: "stripe", type, skip: null, ...changes }) as NewEvent;

const handler = (name: string, pattern: string, options: object = {}) =>
  readHandler({ kind: "handler", source: "stripe", pattern }, name, () => {}, options);

test("an event takes the slots of the handlers that want it, while there are any", () => {
  const handlers = [handler("paid", "payment.*"), handler("all", "*")];
  const events = [event("payment.succeeded"), event("charge.succeeded"), event("payment.failed")];
  const takers = (slots: number) => takersOf(events, new Map([["default", slots]]), () => handlers);
  expect(takers(9)).toEqual([["all", "paid"], ["all"], ["all", "paid"]]);
  expect(takers(3)).toEqual([["all", "paid"], ["all"], []]);
  expect(takers(0)).toEqual([[], [], []]);
});

test("the higher priority comes first, whenever its event arrived", () => {
  const handlers = [handler("any", "*"), handler("urgent", "charge.*", { priority: 5 })];
  const events = [event("payment.succeeded"), event("charge.succeeded")];
  expect(takersOf(events, new Map([["default", 2]]), () => handlers)).toEqual([["any"], ["urgent"]]);
});

test("each queue has its own slots", () => {
  const queues = new Map([
    ["slow", [handler("report", "*", { queue: "slow" })]],
    ["default", [handler("paid", "*")]],
  ]);
  const free = new Map([
    ["slow", 1],
    ["default", 2],
  ]);
  const events = [event("a"), event("b"), event("c")];
  expect(takersOf(events, free, (queue) => queues.get(queue)!)).toEqual([["report", "paid"], ["paid"], []]);
});

test("nobody takes a slot whose job waits for a key, is of another source, or is not to be worked on", () => {
  const handlers = [handler("keyed", "*", { key: "tenant" }), handler("plain", "*")];
  const events = [event("a", { source: "github" }), event("a", { skip: "test mode" }), event("a")];
  expect(takersOf(events, new Map([["default", 9]]), () => handlers)).toEqual([[], [], ["plain"]]);
});
