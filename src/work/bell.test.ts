import { expect, test } from "vitest";
import { createBell } from "./bell.ts";

test("wakes who waits, and is heard by who comes later", async () => {
  const bell = createBell();
  const waiting = bell.wait(60_000);
  bell.ring();
  await waiting;
  bell.ring();
  bell.ring();
  await bell.wait(60_000);
});

test("lets who waits go on after the time", async () => {
  const startedAt = performance.now();
  await createBell().wait(10);
  expect(performance.now() - startedAt).toBeGreaterThan(5);
});
