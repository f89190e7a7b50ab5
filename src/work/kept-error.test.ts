import { expect, test } from "vitest";
import { keepError } from "./kept-error.ts";

test("names the class by the error's name and code", () => {
  expect(keepError(new TypeError("x")).class).toBe("TypeError");
  expect(keepError(Object.assign(new Error("x"), { code: "23505" })).class).toBe("Error 23505");
  expect(keepError(Object.assign(new Error("x"), { code: "a b; drop" })).class).toBe("Error");
  expect(keepError("text").class).toBe("NotAnError");
});

test("keeps whatever was thrown, bounded and storable", () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  expect(keepError(circular).message).toBe("something that cannot be shown");
  expect(keepError(Object.assign(new Error("x"), { message: { code: 5 } })).message).toBe('{"code":5}');
  const hostile = Object.defineProperty(new Error("x"), "stack", {
    get: () => {
      throw new Error("no");
    },
  });
  expect(keepError(hostile)).toMatchObject({ message: "something that cannot be shown" });
  expect(keepError(undefined).message).toBe("undefined");
  expect(keepError(new Error("a\u0000b\uD800c")).message).toBe("a\uFFFDb\uFFFDc");
  const huge = keepError(new Error("x".repeat(10_000_000)));
  expect(huge.message).toHaveLength(1000);
  expect(huge.stack!.length).toBeLessThanOrEqual(8000);
  expect(keepError(Object.assign(new Error("x"), { stack: 5 })).stack).toBeNull();
});
