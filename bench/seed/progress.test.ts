// The bar of the seed, and the room it asks for.
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { demandRoom } from "./disk.ts";
import { drawBar } from "./progress.ts";

test("the bar is as long as what is done", () => {
  expect(drawBar("seed", { done: 1, total: 3, what: "rows" }, 12.4)).toBe(
    `seed ${"█".repeat(10)}${"░".repeat(20)}  33 %  12 s  rows`,
  );
});

test("too little room is refused, with what to do about it", async () => {
  await demandRoom(tmpdir(), { rows: 1, bytes: 1 });
  const rows = 10_000_000;
  await expect(demandRoom(tmpdir(), { rows, bytes: 2 ** 60 })).rejects.toThrow(
    /^10,000,000 rows need about 1073741824\.0 GB of disk, and .* are free in .*--rows$/,
  );
});
