import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readLines, type Line } from "./ndjson.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ukemi-lines-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function linesOf(content: string | Buffer): Promise<Line[]> {
  const path = join(folder, "file.ndjson");
  await writeFile(path, content);
  const lines: Line[] = [];
  for await (const piece of readLines(path)) lines.push(...piece.lines);
  return lines;
}

describe("lines of a file", () => {
  test("are numbered as editors do, blank ones left out", async () => {
    expect(await linesOf("\uFEFFa\n\n  \r\nb\r\nc")).toEqual([
      { number: 1, text: "a" },
      { number: 4, text: "b\r" },
      { number: 5, text: "c" },
    ]);
  });

  test("of an empty file are none", async () => {
    expect(await linesOf("")).toEqual([]);
  });

  test("are whole wherever a piece ends", async () => {
    const long = Array.from({ length: 3000 }, (_, index) => `${index} ${"あ".repeat(index % 400)}`);
    const lines = await linesOf(long.join("\n"));
    expect(lines.map(({ text }) => text)).toEqual(long);
  });

  test("that are too long or not UTF-8 say so, and spoil nothing behind them", async () => {
    const content = Buffer.concat([
      Buffer.from(`a\n${"x".repeat(1024 * 1024 + 1)}\nb\n`),
      Buffer.from([0xff, 0xfe, 0x0a]),
      Buffer.from(`c\n${"y".repeat(9 * 1024 * 1024)}\nd\n${"z".repeat(5 * 1024 * 1024)}`),
    ]);
    const lines = await linesOf(content);
    expect(lines.map(({ number, text, fault }) => [number, text || fault])).toEqual([
      [1, "a"],
      [2, expect.stringContaining("longer")],
      [3, "b"],
      [4, expect.stringContaining("UTF-8")],
      [5, "c"],
      [6, expect.stringContaining("longer")],
      [7, "d"],
      [8, expect.stringContaining("longer")],
    ]);
  });
});
