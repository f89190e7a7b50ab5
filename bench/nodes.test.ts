// Which Node needs help with TypeScript.
import { expect, test } from "vitest";
import { argumentsFor, stripsTypes, versionOf } from "./nodes.ts";

test("22.18 and later run TypeScript by themselves", () => {
  expect(["v20.20.2", "v22.17.1", "v22.18.0", "v24.0.0"].map(stripsTypes)).toEqual([
    false,
    false,
    true,
    true,
  ]);
});

test("an older one is given a loader", () => {
  expect(versionOf(process.execPath)).toBe(process.version);
  expect(argumentsFor(process.execPath)[0]).toBe(
    stripsTypes(process.version) ? "--disable-warning=ExperimentalWarning" : "--import",
  );
});
