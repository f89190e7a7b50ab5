// Tables are read by people who believe them.
import { expect, test } from "vitest";
import { show, size, tableOf } from "./tables.ts";

const five = { low: 4, median: 5, high: 6 };

test("whoever was not run has no figure, and memory has a column where it was looked at", () => {
  const rows = [
    { name: "ukemi", figure: five, ratio: undefined, memory: 100 * 2 ** 20, notes: "ours" },
    { name: "peer", figure: undefined, ratio: undefined },
  ];
  expect(show(tableOf({ title: "Drain", unit: "jobs/s", rows }))).toBe(
    [
      "## Drain",
      "",
      "|  | jobs/s | ours ÷ theirs | peak memory |  |",
      "|---|---|---|---|---|",
      "| ukemi | **5** (4–6) |  | 100 MB | ours |",
      "| peer | not run |  |  |  |",
    ].join("\n"),
  );
  const without = tableOf({ title: "", unit: "ms", rows: [{ name: "a", figure: five, ratio: five }] });
  expect(without.columns).toEqual(["", "ms", "ours ÷ theirs", ""]);
});

test("sizes have few digits", () => {
  expect([0, 8192, 5 * 2 ** 20, 1.5 * 2 ** 30].map(size)).toEqual(["0 kB", "8 kB", "5 MB", "1.5 GB"]);
});
