import { expect, test } from "vitest";
import { maskAddress, senderOf } from "./network.ts";

test.each([
  ["203.0.113.77", "203.0.113.x"],
  ["::ffff:203.0.113.77", "203.0.113.x"],
  ["2001:db8:1:2::3", "2001:db8:1::x"],
  ["2a02::5", "2a02:0:0::x"],
  ["1::2", "1:0:0::x"],
  ["::1", "0:0:0::x"],
  ["fe80::1%eth0", "fe80:0:0::x"],
  ["1:2:3:4:5:6:7:8", "1:2:3::x"],
  ["nonsense", "unknown"],
])("hides the end of %s: %s", (address, masked) => {
  expect(maskAddress(address)).toBe(masked);
});

test.each([
  ["203.0.113.77", "203.0.113.77"],
  ["::ffff:203.0.113.77", "203.0.113.77"],
  ["2001:db8:1:2:aaaa::3", "2001:db8:1:2::/64"],
  ["2a02::5", "2a02:0:0:0::/64"],
])("takes %s for the sender %s", (address, sender) => {
  expect(senderOf(address)).toBe(sender);
});
