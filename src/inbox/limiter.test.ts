import { expect, test } from "vitest";
import { createRefusalLimiter } from "./limiter.ts";

test("lets an address cause so many refusals a minute, then makes it wait, then lets it again", () => {
  let now = 0;
  const limiter = createRefusalLimiter(6, () => now);
  for (let index = 0; index < 6; index++) {
    expect(limiter.waitSeconds("a")).toBe(0);
    limiter.refused("a");
  }
  expect(limiter.waitSeconds("a")).toBe(10);
  expect(limiter.waitSeconds("b")).toBe(0);
  now = 10_000;
  expect(limiter.waitSeconds("a")).toBe(0);
});

test("trusts an address for an hour after a verified request", () => {
  let now = 0;
  const limiter = createRefusalLimiter(1, () => now);
  limiter.verified("a");
  for (let index = 0; index < 5; index++) limiter.refused("a");
  expect(limiter.waitSeconds("a")).toBe(0);
  now = 61 * 60_000;
  limiter.refused("a");
  expect(limiter.waitSeconds("a")).toBeGreaterThan(0);
});

test("remembers no more than ten thousand addresses", () => {
  const limiter = createRefusalLimiter(1, () => 0);
  limiter.refused("first");
  for (let index = 0; index < 10_000; index++) limiter.refused(`address ${index}`);
  expect(limiter.waitSeconds("first")).toBe(0);
  expect(limiter.waitSeconds("address 9999")).toBeGreaterThan(0);
});
