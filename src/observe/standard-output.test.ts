import pino from "pino";
import { expect, test, vi } from "vitest";
import { standardOutput } from "./standard-output.ts";

test("writes lines in groups, and what is left at the end of the process", () => {
  vi.useFakeTimers();
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
  vi.runAllTimers();
  expect(written).toEqual(["1\n2\n"]);
  output.write("3\n");
  output.flushSync();
  expect(written).toEqual(["1\n2\n", "3\n"]);
  expect(destination.flushSync).toHaveBeenCalledOnce();
  vi.runAllTimers();
  expect(written).toHaveLength(2);
  vi.useRealTimers();
});
