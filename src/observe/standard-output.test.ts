import { setImmediate } from "node:timers/promises";
import pino from "pino";
import { expect, test, vi } from "vitest";
import { standardOutput } from "./standard-output.ts";

test("writes the lines of one turn together, and what is left at the end of the process", async () => {
  const written: string[] = [];
  const destination = { write: (text: string) => written.push(text), flushSync: vi.fn<() => void>() };
  vi.spyOn(pino, "destination").mockReturnValue(
    destination as unknown as ReturnType<typeof pino.destination>,
  );
  const output = standardOutput();
  expect(standardOutput(), "one for the process").toBe(output);

  output.write("1\n");
  output.write("2\n");
  expect(written).toEqual([]);
  await setImmediate();
  expect(written).toEqual(["1\n2\n"]);
  output.write("3\n");
  output.flushSync();
  expect(written).toEqual(["1\n2\n", "3\n"]);
  expect(destination.flushSync).toHaveBeenCalledOnce();
  await setImmediate();
  expect(written).toHaveLength(2);
});
