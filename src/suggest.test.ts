import { expect, test } from "vitest";
import { didYouMean, nearest } from "./suggest.ts";

const names = ["concurrency", "database", "port", "logLevel", "UKEMI_PORT"];

test.each([
  ["concurency", "concurrency"],
  ["dtabase", "database"],
  ["LOG_LEVEL", "logLevel"],
  ["prot", "port"],
  ["UKEMI_PROT", "UKEMI_PORT"],
  ["zebra", undefined],
  ["", undefined],
  ["--", undefined],
])("takes %s for %s", (word, meant) => {
  expect(nearest(word, names)).toBe(meant);
});

test("ends a sentence either way", () => {
  expect(didYouMean("prot", names)).toBe(": did you mean port?");
  expect(didYouMean("zebra", names)).toBe(".");
});
