import { describe, expect, test } from "vitest";
import { readRetryAfter } from "./retry-after.ts";

const NOW = Date.parse("2026-11-15T09:00:00Z");

describe("Retry-After", () => {
  test.each([
    ["0", 0],
    ["7", 7000],
    [" 120 ", 120_000],
    ["1.5", 1500],
    ["999999999999", 10 * 365 * 86_400_000],
    ["Sun, 15 Nov 2026 09:00:30 GMT", 30_000],
    ["Sun, 15 Nov 2026 08:00:00 GMT", 0],
  ])("%j asks for %d ms", (value, expected) => {
    expect(readRetryAfter(value, { now: NOW })).toBe(expected);
  });

  test.each([undefined, "", "soon", "-5", "1e3", "5 minutes please", "12:30"])(
    "%j asks for nothing",
    (value) => {
      expect(readRetryAfter(value, { now: NOW })).toBeUndefined();
    },
  );

  test("a date is taken by the peer's own clock", () => {
    const asked = "Sun, 15 Nov 2026 10:00:30 GMT";
    expect(readRetryAfter(asked, { now: NOW, date: "Sun, 15 Nov 2026 10:00:00 GMT" })).toBe(30_000);
    expect(readRetryAfter(asked, { now: NOW, date: "yesterday" })).toBe(3_630_000);
  });
});
