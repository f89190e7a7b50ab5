// Times as people write and read them.
import { expect, test } from "vitest";
import { readMoment, showAgo, showTime } from "./moment.ts";

const NOW = Date.parse("2026-11-15T12:00:00Z");

test("reads a time, or how long ago", () => {
  const read = (text: string) => readMoment("--since", text, NOW).toISOString();
  expect(read("2026-11-15T09:00:00Z")).toBe("2026-11-15T09:00:00.000Z");
  expect(read("90m")).toBe("2026-11-15T10:30:00.000Z");
  expect(read("2h")).toBe("2026-11-15T10:00:00.000Z");
  expect(read("3d")).toBe("2026-11-12T12:00:00.000Z");
});

test.each(["yesterday", "3", "3w", "-3d", "2026-13-45", ""])(
  "refuses %j and says what is expected",
  (text) => {
    expect(() => readMoment("--since", text, NOW)).toThrow("--since must be a time such as");
  },
);

test("shows how long ago in the largest unit that says enough", () => {
  const ago = (seconds: number) => showAgo(new Date(NOW - seconds * 1000), NOW);
  expect([5, 119, 120, 7199, 7200, 200_000, -5].map(ago)).toEqual([
    "5 s ago",
    "119 s ago",
    "2 min ago",
    "120 min ago",
    "2 h ago",
    "2 d ago",
    "0 s ago",
  ]);
  expect(showTime("2026-11-15T12:00:00.123456+00:00")).toBe("2026-11-15 12:00:00Z");
});
