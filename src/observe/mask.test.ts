import { expect, test } from "vitest";
import { maskAddress } from "./mask.ts";

test.each([
  ["203.0.113.77", "203.0.113.x"],
  ["::ffff:203.0.113.77", "203.0.113.x"],
  ["2001:db8:1:2::3", "2001:db8:1::x"],
  ["nonsense", "unknown"],
])("%s → %s", (address, masked) => {
  expect(maskAddress(address)).toBe(masked);
});
