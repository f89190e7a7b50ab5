import fc from "fast-check";
import { expect, test } from "vitest";
import { matches, readHandler } from "./handler.ts";

const target = { kind: "handler", source: "stripe", pattern: "*" } as const;
const read = (options: object, name = "receipts") => readHandler(target, name, () => {}, options);

test.each([
  ["payment_intent.succeeded", "payment_intent.succeeded", true],
  ["payment_intent.succeeded", "payment_intent.succeeded2", false],
  ["payment_intent.*", "payment_intent.succeeded", true],
  ["payment_intent.*", "payment_intent", false],
  ["*.succeeded", "charge.succeeded", true],
  ["*", "anything", true],
  ["invoice.*.paid", "invoice.paid", false],
  ["invoice.*.paid", "invoice.x.paid", true],
  ["a*a", "a", false],
  ["a*b*c", "aXbYbZc", true],
  ["charge_", "chargeX", false],
])("the pattern %s and the type %s match: %s", (pattern, type, expected) => {
  expect(matches(pattern, type)).toBe(expected);
});

test("matches as a regular expression with .* would", () => {
  const text = fc.stringMatching(/^[ab.*]{0,8}$/);
  fc.assert(
    fc.property(text, fc.stringMatching(/^[ab.]{0,8}$/), (pattern, type) => {
      const escaped = pattern.split("*").map((part) => part.replaceAll(".", String.raw`\.`));
      expect(matches(pattern, type)).toBe(new RegExp(`^${escaped.join(".*")}$`).test(type));
    }),
  );
});

test.each([
  [{ queue: "with space" }, /queue must be/],
  [{ priority: 1.5 }, /priority must be/],
  [{ priority: 40_000 }, /priority must be/],
  [{ timeLimitMs: 0 }, /timeLimitMs must be/],
  [{ key: { ref: "" } }, /key must be/],
  [{ ordered: true }, /ordered needs a key/],
  [{ queue: "inline", key: "tenant" }, /inline handler cannot have a key/],
  [{ queue: "inline", transaction: {} }, /cannot bring its own/],
])("refuses %j", (options, message) => {
  expect(() => read(options)).toThrow(message);
});

test("refuses a name that could not be stored or read, and what is no function", () => {
  expect(() => read({}, "")).toThrow(/its name must be/);
  expect(() => read({}, "x\u0000")).toThrow(/its name must be/);
  expect(() => readHandler(target, "x", "not a function" as never)).toThrow(/not a function/);
});

test("fills in the defaults", () => {
  expect(read({})).toMatchObject({ queue: "default", priority: 0, keyBy: null, ordered: false });
  expect(read({ key: { ref: "payment_intent" }, ordered: true })).toMatchObject({
    keyBy: "payment_intent",
    ordered: true,
  });
});
