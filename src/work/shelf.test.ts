import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Job } from "../storage/claim.ts";
import type { RunningJob } from "./running.ts";
import { createShelf } from "./shelf.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const held = (queue: string, id: string) => ({ job: { queue, id } as Job }) as RunningJob;
const idsOf = (list: readonly (RunningJob | undefined)[]) => list.map((one) => one?.job.id);

test("hands out those of a queue in the order in which they came", () => {
  const shelf = createShelf(() => {});
  shelf.put(held("a", "1"), 0);
  shelf.put(held("b", "2"), 0);
  shelf.put(held("a", "3"), 0);
  expect(idsOf([shelf.take("a"), shelf.take("a"), shelf.take("a")])).toEqual(["1", "3", undefined]);
  expect(idsOf(shelf.clear())).toEqual(["2"]);
  expect(shelf.take("b")).toBeUndefined();
});

test("lets go of one queue, or of all", () => {
  const shelf = createShelf(() => {});
  for (const [queue, id] of [
    ["a", "1"],
    ["b", "2"],
    ["a", "3"],
    ["c", "4"],
  ] as const)
    shelf.put(held(queue, id), 0);
  expect(idsOf(shelf.clear("a"))).toEqual(["1", "3"]);
  expect(idsOf(shelf.clear("a"))).toEqual([]);
  expect(idsOf(shelf.clear())).toEqual(["2", "4"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("says when one has waited too long, and leaves no timer behind when it is empty", () => {
  const stale = vi.fn();
  const clock = vi.spyOn(performance, "now").mockReturnValue(900);
  const shelf = createShelf(stale);
  shelf.put(held("a", "1"), 0);
  vi.advanceTimersByTime(300);
  expect(stale).not.toHaveBeenCalled();
  clock.mockReturnValue(1100);
  vi.advanceTimersByTime(300);
  expect(stale.mock.calls).toEqual([["a"]]);
  shelf.clear();
  expect(vi.getTimerCount()).toBe(0);
  shelf.put(held("a", "2"), 0);
  shelf.take("a");
  expect(vi.getTimerCount()).toBe(0);
});
