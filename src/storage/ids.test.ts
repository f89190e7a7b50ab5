import { expect, test } from "vitest";
import { isUuid, uuidv7, uuidv7Floor } from "./ids.ts";

test("makes version 7 ids that sort by time and never repeat", () => {
  const ids = Array.from({ length: 2000 }, (_, index) => uuidv7(1_700_000_000_000 + index));
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test("gives a floor below every id of that time and above every earlier one", () => {
  const at = 1_700_000_000_000;
  for (let index = 0; index < 200; index++) {
    expect(uuidv7(at) >= uuidv7Floor(at)).toBe(true);
    expect(uuidv7(at - 1) < uuidv7Floor(at)).toBe(true);
  }
});

test("knows a uuid from other text", () => {
  expect(isUuid(uuidv7(0))).toBe(true);
  for (const text of ["", "evt_1", `${uuidv7(0)}x`, uuidv7(0).replaceAll("-", "")])
    expect(isUuid(text)).toBe(false);
});
