// Tables fit the terminal, and nothing from elsewhere can play tricks with it.
import { expect, test } from "vitest";
import { table } from "./table.ts";
import { fold, widthOf } from "./width.ts";

test("lines up columns under their names", () => {
  expect(
    table([
      { id: "1", name: "one" },
      { id: "22", name: "" },
    ]),
  ).toBe("id  name\n1   one\n22");
});

test("cuts the widest of the columns that may be cut, and only those", () => {
  const rows = [{ id: "123456789012345", handler: "h".repeat(40), error: "e".repeat(200) }];
  for (const width of [60, 80, 200]) {
    const lines = table(rows, { width, cut: ["handler", "error"] }).split("\n");
    expect(Math.max(...lines.map(widthOf))).toBe(width);
    expect(lines[1]).toContain("123456789012345");
    expect(lines[1]).toMatch(/e…$/);
  }
  expect(table(rows, { width: 10, cut: ["error"] })).toContain("h".repeat(40));
});

test("cuts names in the middle, where they differ least", () => {
  const rows = [{ handler: "stripe/payment_intent.succeeded" }];
  expect(table(rows, { width: 20, cut: ["handler"], names: ["handler"] })).toBe(
    "handler\nstripe/pay…succeeded",
  );
});

test("counts characters that take two columns, and those that take none", () => {
  expect([widthOf("支払い"), widthOf("e\u0301"), widthOf("💥")]).toEqual([6, 1, 2]);
  const lines = table([{ error: "支払いに失敗しました。".repeat(5), id: "1" }], {
    width: 40,
    cut: ["error"],
  }).split("\n");
  expect(widthOf(lines[1]!)).toBeLessThanOrEqual(40);
});

test("lets no control character through", () => {
  const shown = table([{ error: "red \u001B[31m, up \u001B[A, bell \u0007, over\rwritten\nand \u202Eback" }]);
  expect(shown.split("\n")[1]).toBe("red , up , bell  , over written and  back");
});

test("leaves out columns that can be missed where the others could not be read", () => {
  const rows = [{ id: "1", death: "exhausted", error: "x".repeat(90) }];
  const options = { cut: ["error"], optional: ["death"] };
  expect(table(rows, { ...options, width: 40 })).toMatch(/^id {2}death +error\n/);
  expect(table(rows, { ...options, width: 30 })).toMatch(/^id {2}error\n/);
  expect(table(rows, options)).toMatch(/^id {2}death +error\n/);
});

test("folds text below the label that introduces it, and breaks words that are too wide", () => {
  expect(fold("error      one two three four", 24)).toBe("error      one two three\n           four");
  expect(fold("  at 支払い支払い", 9)).toBe("  at\n  支払い\n  支払い");
  expect(fold("as it is \u001B[31m", 80)).toBe("as it is");
});
