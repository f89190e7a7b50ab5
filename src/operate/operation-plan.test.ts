import fc from "fast-check";
import { expect, test } from "vitest";
import { advance, judge, nextLook, pace, sizeOf } from "./operation-plan.ts";

const STANDING = {
  kind: "replay",
  state: "running",
  stage: "all",
  stageLeft: null,
  waiting: 1000,
  replayed: 0,
  done: 0,
  dead: 0,
  judgedBefore: 0,
  failedBefore: 0,
  failureLimit: 0.1,
  rate: null,
  allowedMs: 0,
} as const;

test("judges by the share of those that ended, and only while something is left to hold back", () => {
  expect(judge({ ...STANDING, done: 8, dead: 3 })).toBe(
    "3 of 11 died again: 27.3 % is above the limit of 10 %.",
  );
  expect(judge({ ...STANDING, done: 8, dead: 3, waiting: 0 })).toBeUndefined();
  expect(judge({ ...STANDING, done: 9, dead: 1 })).toBeUndefined();
  expect(judge({ ...STANDING, done: 0, dead: 9 })).toBeUndefined();
  expect(judge({ ...STANDING, done: 0, dead: 10, failureLimit: 1 })).toBeUndefined();
  expect(judge({ ...STANDING, done: 99, dead: 1, failureLimit: 0 })).toContain("above the limit of 0 %");
  // what had failed before a resume is not held against it
  expect(judge({ ...STANDING, done: 18, dead: 4, judgedBefore: 11, failedBefore: 3 })).toBeUndefined();
});

test("a stage ends when its items have, and not before", () => {
  expect(advance({ stage: "one", stageLeft: 1, replayed: 0 })).toEqual({ stage: "one", stageLeft: 1 });
  expect(advance({ stage: "one", stageLeft: 0, replayed: 1 })).toEqual({ stage: "one", stageLeft: 0 });
  expect(advance({ stage: "one", stageLeft: 0, replayed: 0 })).toEqual({ stage: "ten", stageLeft: 10 });
  expect(advance({ stage: "ten", stageLeft: 0, replayed: 0 })).toEqual({ stage: "all", stageLeft: null });
  expect(advance({ stage: "all", stageLeft: null, replayed: 0 })).toEqual({ stage: "all", stageLeft: null });
});

test("in any stretch of time no more are done than the rate allows, with a quarter second's worth made up for", () => {
  const looks = fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 1, maxLength: 60 });
  const rates = fc.double({ min: 0.001, max: 10_000, noNaN: true });
  fc.assert(
    fc.property(looks, rates, (pauses, rate) => {
      let allowedMs = 0;
      let at = 0;
      const done: { at: number; count: number }[] = [];
      for (const pause of pauses) {
        at += pause;
        allowedMs += pause;
        const standing = { ...STANDING, waiting: 1_000_000, rate, allowedMs };
        const count = sizeOf(standing);
        allowedMs = -pace(standing, count);
        done.push({ at, count });
      }
      for (const [first, from] of done.entries()) {
        let sum = 0;
        for (const to of done.slice(first)) {
          sum += to.count;
          const ms = to.at - from.at + 250;
          expect(sum).toBeLessThanOrEqual((ms * rate) / 1000 + 1 + 1e-6 * sum);
        }
      }
    }),
  );
});

test("is looked at again at once while more may be done, and rarely when nothing moves", () => {
  expect(nextLook(STANDING, { moved: true, idleMs: 0 })).toBe(0);
  expect(nextLook({ ...STANDING, rate: 100, allowedMs: -30 }, { moved: true, idleMs: 0 })).toBe(30);
  expect(nextLook({ ...STANDING, rate: 1, allowedMs: -900 }, { moved: true, idleMs: 0 })).toBe(200);
  expect(nextLook({ ...STANDING, replayed: 1000 }, { moved: true, idleMs: 0 })).toBe(200);
  expect(nextLook({ ...STANDING, waiting: 0 }, { moved: false, idleMs: 5000 })).toBe(500);
  expect(nextLook({ ...STANDING, waiting: 0 }, { moved: false, idleMs: 1e9 })).toBe(2000);
  expect(nextLook({ ...STANDING, state: "aborted" }, { moved: false, idleMs: 0 })).toBe(200);
});
