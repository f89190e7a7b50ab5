import { afterEach, expect, test, vi } from "vitest";
import { createSlots } from "./slots.ts";

afterEach(() => void vi.restoreAllMocks());

/** The steady clock, at the beginning of a stretch in which ends are counted. */
function standingClock(): { ms: number } {
  const clock = { ms: 5000 };
  vi.spyOn(performance, "now").mockImplementation(() => clock.ms);
  return clock;
}

test("counts by queue, and says when one is free", () => {
  const freed: string[] = [];
  const slots = createSlots(
    new Map([
      ["a", 2],
      ["b", 1],
    ]),
    (queue) => freed.push(queue),
  );
  slots.take("a", 2);
  expect([slots.free("a"), slots.free("b"), slots.free("unknown")]).toEqual([0, 1, 0]);
  slots.release("a", 1);
  expect(slots.free("a")).toBe(1);
  expect(freed).toEqual(["a"]);
});

test("closes for one that must run alone: nothing starts, and it is told when it has become quiet", () => {
  const freed: string[] = [];
  const slots = createSlots(new Map([["a", 2]]), (queue) => freed.push(queue));
  expect(slots.quietMs()).toBe(Infinity);
  slots.take("a", 1);
  slots.close();
  expect([slots.free("a"), slots.quietMs()]).toEqual([0, 0]);
  slots.release("a", 1); // it was only held
  expect(slots.quietMs()).toBe(Infinity);
  slots.take("a", 1);
  slots.end("a");
  expect(slots.free("a")).toBe(0);
  expect(slots.quietMs()).toBeLessThan(1000);
  slots.reopen();
  expect(slots.free("a")).toBe(2);
  expect(freed).toContain("a");
});

test("lets jobs be held ahead as they end, and only as many as may run at once start", () => {
  const clock = standingClock();
  const slots = createSlots(new Map([["a", 2]]), () => {});
  expect([slots.claimable("a"), slots.mayStart("a")]).toEqual([2, true]);
  for (let nth = 0; nth < 10; nth += 1) {
    slots.take("a", 1);
    slots.start("a");
    slots.end("a");
  }
  expect(slots.claimable("a")).toBe(2); // the present stretch does not count yet
  clock.ms += 100;
  expect(slots.claimable("a")).toBe(12);
  slots.take("a", 12);
  slots.start("a");
  slots.start("a");
  expect([slots.mayStart("a"), slots.free("a"), slots.claimable("a"), slots.halfFree("a")]).toEqual([
    false,
    0,
    0,
    false,
  ]);
  clock.ms += 200; // none has ended since
  slots.release("a", 10);
  expect([slots.claimable("a"), slots.mayStart("a")]).toEqual([0, false]);
  slots.end("a");
  expect([slots.claimable("a"), slots.mayStart("a")]).toEqual([1, true]);
});

test("holds no more than five hundred ahead, however fast jobs end", () => {
  const clock = standingClock();
  const slots = createSlots(new Map([["a", 1]]), () => {});
  for (let nth = 0; nth < 2000; nth += 1) {
    slots.take("a", 1);
    slots.start("a");
    slots.end("a");
  }
  clock.ms += 100;
  slots.take("a", 400);
  expect(slots.claimable("a")).toBe(101);
});

test("holds no more ahead than there is memory for", () => {
  const clock = standingClock();
  const slots = createSlots(new Map([["a", 4]]), () => {});
  for (let nth = 0; nth < 300; nth += 1) {
    slots.take("a", 1);
    slots.start("a");
    slots.end("a");
  }
  clock.ms += 100;
  slots.take("a", 200);
  slots.weigh("a", 1500);
  expect(slots.claimable("a")).toBe(104);
  slots.release("a", 200);
  slots.weigh("a", 1024 * 1024);
  expect(slots.claimable("a")).toBe(4 + 16);
});
