// What a process says last is read by whoever wants to know why it ended.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const OUTPUT = fileURLToPath(new URL("../../dist/observe/standard-output.js", import.meta.url));
const TIMES = 24;

/** Says something, a while later something more, and ends. */
const program = (end: string) => `
  import { standardOutput } from ${JSON.stringify(OUTPUT)};
  const output = standardOutput();
  output.write("first\\n");
  setTimeout(() => { output.write("last\\n"); ${end} }, 60);`;

async function saidBy(end: string): Promise<string> {
  const child = spawn(process.execPath, ["--input-type=module", "-e", program(end)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  await once(child, "close");
  return said;
}

test.each([
  ["by itself", ""],
  ["by process.exit", "process.exit(0)"],
  ["by an error", "process.on('uncaughtException', () => process.exit(1)); throw new Error('end')"],
])("the last line is written by a process that ends %s", async (_, end) => {
  const said = await Promise.all(Array.from({ length: TIMES }, () => saidBy(end)));
  // the first may still be on its way when the process ends, and come last
  const lines = said.map((text) => text.trimEnd().split("\n").toSorted());
  expect(lines).toEqual(Array.from({ length: TIMES }, () => ["first", "last"]));
});
