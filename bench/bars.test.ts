// A bar that counts as reached without being so would be the worst fault of the bench.
import { expect, test } from "vitest";
import { barsIn, isReached } from "./bars.ts";

test("a bar is reached at its own figure, where it is not one to stay below", () => {
  expect([0.849, 0.85].map((ratio) => isReached("ingestLimit", ratio))).toEqual([false, true]);
  expect([1.2, 1.21].map((ratio) => isReached("ingestSlowest", ratio))).toEqual([true, false]);
  expect([1.49, 1.5].map((ms) => isReached("latency", ms))).toEqual([true, false]);
  expect(isReached("growth", Number.NaN)).toBe(false);
});

test("the table has the bars that were measured, in their order, and says what could not be", () => {
  const bars = barsIn([
    { bar: "growth", measured: 0.7, of: "ingest" },
    { bar: "latency", measured: 1.234 },
    { bar: "ingestRedis", measured: undefined },
    { bar: "ingestLimit", measured: 0.9 },
    { bar: "ingestPeers", measured: 4.4, byHand: 4.567 },
  ]);
  expect(bars.map(({ cells }) => cells)).toEqual([
    ["ingest ÷ group commit of the same rows by hand", "**0.90**", "", "≥ 0.85", "reached"],
    [
      "ingest ÷ the best of graphile-worker, pg-boss, DBOS behind HTTP",
      "**4.40**",
      "4.57",
      "≥ 5",
      "**not reached**",
    ],
    ["ingest ÷ BullMQ behind HTTP", "not run", "", "≥ 1", ""],
    ["latency in the same process, p50", "**1.23 ms**", "", "< 1.5 ms", "reached"],
    ["growth: ingest", "**0.70**", "", "≥ 0.9", "**not reached**"],
  ]);
});
