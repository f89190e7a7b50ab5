// The document is what people quote: it says of each figure how it was come by.
import { expect, test } from "vitest";
import { documentOf, newer, type Result } from "./results.ts";

const result = (quick: boolean, rounds = 15): Result => ({
  contest: "latency",
  at: "2026-11-16T17:00",
  rounds,
  quick,
  machine: "2 × a machine",
  tables: [{ title: "Latency", columns: ["", "ms"], rows: [["ukemi", "2"]], remarks: ["a remark"] }],
  judged: [{ bar: "latency", measured: 2 }],
});

test("a look does not replace a measurement, and everything else is replaced by what is newer", () => {
  const [look, measured] = [result(true), result(false)];
  expect(newer(measured, look)).toBe(measured);
  expect(newer(look, measured)).toBe(measured);
  expect([newer(undefined, look), newer(look, undefined)]).toEqual([look, look]);
  const again = result(false);
  expect(newer(measured, again)).toBe(again);
});

test("each table and each bar says of how many rounds it is", () => {
  const document = documentOf([result(true, 4)]);
  expect(document).toContain(
    "| latency in the same process, p50 | **2.00 ms** |  | < 1.5 ms | **not reached** | 4 rounds, quick: a look, not a measurement |",
  );
  expect(document).toContain(
    "## Latency\n\n2026-11-16T17:00Z, 4 rounds, quick: a look, not a measurement. 2 × a machine.\n\n|  | ms |",
  );
  expect(document).toContain("- a remark");
});
