import { expect, test } from "vitest";
import { createSlots } from "./slots.ts";

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
