// The first things that a person at a terminal reads: the overview, suggestions, and doctor at two widths.
import { spawn } from "@lydell/node-pty";
import { expect, test } from "vitest";
import { runCli } from "../support/cli.ts";
import { createDatabase } from "../support/database.ts";
import { BIN, cleanEnv } from "../support/server.ts";

/** Runs a command in a terminal of this width. */
async function inTerminal(cols: number, args: readonly string[], env: Record<string, string> = {}) {
  const terminal = spawn(process.execPath, [BIN, ...args], {
    cols,
    rows: 50,
    env: { ...cleanEnv(), ...env },
  });
  let output = "";
  terminal.onData((text) => (output += text));
  const code = await new Promise<number>(
    (resolve) => void terminal.onExit(({ exitCode }) => resolve(exitCode)),
  );
  return { code, lines: output.replaceAll("\r", "").trimEnd().split("\n") };
}

test.each([[[]], [["help"]], [["--help"]]])(
  "ukemi %j shows the commands in groups, within 80 columns",
  async (args) => {
    const { code, lines } = await inTerminal(80, args);
    expect(code).toBe(0);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    const headings = lines.filter((line) => /^[A-Z][^.]*:$/.test(line));
    expect(headings).toEqual(["Options:", "Begin:", "Run:", "See:", "Mend:", "More:"]);
  },
);

test("help is there for every part of a command", async () => {
  const help = await runCli(["help", "dead", "list"]);
  expect(help).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("Usage: ukemi dead list") as string,
  });
});

test.each([
  [["servee"], "Did you mean serve?"],
  [["help", "servee"], "Did you mean serve?"],
  [["servee", "--help"], "Did you mean serve?"],
  [["dead", "lst"], "Did you mean list?"],
  [["serve", "--prot", "1"], "Did you mean --port?"],
  [["queues", "--jsn"], "Did you mean --json?"],
])("ukemi %j is a mistake, and the nearest is named", async (args, suggestion) => {
  const { code, stdout, stderr } = await runCli(args);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toMatch(/^ukemi: unknown (?:command|option) /);
  expect(stderr.toLowerCase()).toContain(suggestion.toLowerCase());
});

test.each([80, 200])("doctor fits a terminal of %i columns", async (cols) => {
  const { url } = await createDatabase();
  const env = { DATABASE_URL: url, UKEMI_ADMIN_TOKEN: "", UKEMI_CONCURENCY: "1", UKEMI_LANES: "many" };
  const { code, lines } = await inTerminal(cols, ["doctor"], env);
  expect(code).toBe(2);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(cols);
  expect(lines).toContainEqual(expect.stringMatching(/^BAD +config +UKEMI_LANES must be a whole number/));
  expect(lines).toContainEqual(expect.stringMatching(/^ok +schema/));
  expect(lines.slice(0, 2)).toEqual([
    expect.stringMatching(/^option +value +from$/),
    expect.stringMatching(/^database +postgres.* +DATABASE_URL$/),
  ]);
});
