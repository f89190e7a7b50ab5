import { expect, test } from "vitest";
import { createRefusalLimiter } from "./limiter.ts";

test("lets an address cause so many refusals a minute, then makes it wait, then lets it again", () => {
  let now = 0;
  const limiter = createRefusalLimiter(6, () => now);
  for (let index = 0; index < 6; index++) {
    expect(limiter.blocked("a")).toBeUndefined();
    limiter.refused("a");
  }
  expect(limiter.blocked("a")).toEqual({ waitSeconds: 10, isNews: true });
  expect(limiter.blocked("a")).toEqual({ waitSeconds: 10, isNews: false });
  expect(limiter.blocked("b")).toBeUndefined();
  now = 10_000;
  expect(limiter.blocked("a")).toBeUndefined();
});

test("trusts an address for an hour after a verified request", () => {
  let now = 0;
  const limiter = createRefusalLimiter(1, () => now);
  limiter.verified("a");
  for (let index = 0; index < 5; index++) limiter.refused("a");
  expect(limiter.blocked("a")).toBeUndefined();
  now = 61 * 60_000;
  limiter.refused("a");
  expect(limiter.blocked("a")).toBeDefined();
});

test("remembers no more than ten thousand addresses", () => {
  const limiter = createRefusalLimiter(1, () => 0);
  limiter.refused("first");
  for (let index = 0; index < 10_000; index++) limiter.refused(`address ${index}`);
  expect(limiter.blocked("first")).toBeUndefined();
  expect(limiter.blocked("address 9999")).toBeDefined();
});
