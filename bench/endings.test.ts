// Nothing may be left behind, and nothing ended twice.
import { expect, test } from "vitest";
import { ending, leavingNothing } from "./endings.ts";

test("what a contest leaves is ended, the youngest first, and what was there before is not", async () => {
  const ended: string[] = [];
  const begin = (name: string) => ending(() => Promise.resolve(void ended.push(name)));
  const store = begin("store");
  const failing = leavingNothing(async () => {
    begin("server");
    const stop = begin("loader");
    begin("worker");
    await stop();
    throw new Error("it failed");
  });
  await expect(failing).rejects.toThrow("it failed");
  expect(ended).toEqual(["loader", "worker", "server"]);
  await Promise.all([store(), store()]);
  expect(ended).toEqual(["loader", "worker", "server", "store"]);
});
