import { expect, test } from "vitest";
import { readPolicy } from "./policy.ts";

const waits = (retry: Parameters<typeof readPolicy>[0], random?: () => number) => {
  const policy = readPolicy(retry, random);
  return Array.from({ length: policy.maxAttempts - 1 }, (_, index) => policy.delayMs(index + 1));
};
const middle = () => 0.5;

test("quick tries again after 1, 2 and 4 seconds", () => {
  expect(waits("quick")).toEqual([1000, 2000, 4000]);
});

test("patient has twelve tries over three days", () => {
  const delays = waits("patient", middle);
  expect(delays).toHaveLength(11);
  const days = delays.reduce((sum, ms) => sum + ms, 0) / 86_400_000;
  expect(days).toBeGreaterThan(2.9);
  expect(days).toBeLessThan(3.1);
});

test("qstash waits e^(2.5 n) seconds", () => {
  expect(waits("qstash").map((ms) => Math.round(ms / 1000))).toEqual([12, 148, 1808]);
});

test("repeats the last wait of a list, asks a function, and spreads by the jitter", () => {
  expect(waits({ retries: 4, delaysMs: [5, 10] })).toEqual([5, 10, 10, 10]);
  expect(waits({ retries: 3, delaysMs: (retry) => retry * 7 })).toEqual([7, 14, 21]);
  expect(waits({ retries: 3 })).toEqual([1000, 2000, 4000]);
  expect(waits({ retries: 0 })).toEqual([]);
  expect(waits({ retries: 1, delaysMs: [1000], jitter: 0.2 }, () => 0)).toEqual([800]);
  expect(waits({ retries: 1, delaysMs: [1000], jitter: 0.2 }, () => 1)).toEqual([1200]);
});

test("bounds what a function returns to a year, and takes a minute where it returns nothing sensible", () => {
  const returns = [Number.NaN, -5, 1e12, Infinity];
  expect(waits({ retries: 4, delaysMs: (retry) => returns[retry - 1]! })).toEqual([
    60_000, 0, 31_536_000_000, 31_536_000_000,
  ]);
  const broken = () => {
    throw new Error("no");
  };
  expect(waits({ retries: 1, delaysMs: broken })).toEqual([60_000]);
});

test.each([
  ["brisk", /no retry policy named "brisk"/],
  [{ retries: -1, delaysMs: [1] }, /retries must be/],
  [{ retries: 1.5, delaysMs: [1] }, /retries must be/],
  [{ retries: 1, delaysMs: [] }, /delaysMs must hold/],
  [{ retries: 1, delaysMs: [-1] }, /delaysMs must hold/],
  [{ retries: 1, delaysMs: [1], jitter: 2 }, /jitter must be/],
])("refuses %j", (retry, message) => {
  expect(() => readPolicy(retry as never)).toThrow(message);
});
