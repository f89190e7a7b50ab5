import { expect, test } from "vitest";
import type { Job } from "../storage/claim.ts";
import type { NewEvent } from "../storage/events.ts";
import type { Floor } from "./floor.ts";
import { readHandler } from "./handler.ts";
import { makeOffer, takersOf } from "./offer.ts";
import { createSlots } from "./slots.ts";

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

/** A floor on which nothing runs. */
function emptyFloor(concurrency: ReadonlyMap<string, number>) {
  const slots = createSlots(concurrency, () => {});
  const ran: string[] = [];
  const returned: string[] = [];
  const floor = {
    worker: "w",
    over: new AbortController().signal,
    leaseMs: 1000,
    slots,
    running: { expect: () => "token", expectNoMore() {} },
    handlersOf: () => [],
    run({ id, queue }: Job) {
      ran.push(id);
      slots.start(queue);
      slots.end(queue);
    },
    giveBackClaim: (token: string) => void returned.push(token),
  } as unknown as Floor;
  return { floor, slots, ran, returned };
}

const claimed = (queue: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: String(index), queue }) as Job);

test("jobs that come in another queue than was thought leave no slot behind, and none too many", () => {
  const free = new Map([
    ["a", 10],
    ["b", 1],
  ]);
  const { floor, slots, ran } = emptyFloor(free);
  makeOffer(floor, free)!.accept(claimed("b", 10));
  expect([ran.length, slots.free("a"), slots.free("b"), slots.quietMs() < 1000]).toEqual([10, 10, 1, true]);
});

test("what was inserted as claimed is given back where it must not begin any more", () => {
  const free = new Map([["a", 2]]);
  const { floor, slots, ran, returned } = emptyFloor(free);
  makeOffer(floor, free, () => true)!.accept(claimed("a", 2));
  expect([ran, returned, slots.free("a")]).toEqual([[], ["token"], 2]);
  makeOffer(floor, free, () => true)!.accept([]);
  expect(returned).toEqual(["token"]);
});
