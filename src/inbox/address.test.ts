import { expect, test } from "vitest";
import { createAddressOf } from "./address.ts";

const addressOf = createAddressOf(["10.0.0.0/8"]);
const from = (forwarded: string, peer = "10.0.0.1") => addressOf(peer, { "x-forwarded-for": forwarded });

test.each([
  ["203.0.113.7", "203.0.113.7"],
  ["203.0.113.7, 10.1.1.1", "203.0.113.7"],
  ["6.6.6.6, 203.0.113.7, 10.1.1.1", "203.0.113.7"],
  ["203.0.113.7:51234", "203.0.113.7"],
  ["[2001:db8::1]:443", "2001:db8::1"],
  ["2001:db8::1", "2001:db8::1"],
  ["", "10.0.0.1"],
])("reads %j from a trusted proxy as %s", (forwarded, address) => {
  expect(from(forwarded)).toBe(address);
});

test("believes nobody else", () => {
  expect(from("203.0.113.7", "198.51.100.1")).toBe("198.51.100.1");
  expect(createAddressOf([])("10.0.0.1", { "x-forwarded-for": "203.0.113.7" })).toBe("10.0.0.1");
});
