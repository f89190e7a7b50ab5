import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { faultsOfBodyKeys, readBodyKeys } from "./body-keys.ts";
import { checkSettings, DEFAULTS, readSettings, showOption } from "./options.ts";

const KEY = randomBytes(32).toString("base64");
const OTHER = randomBytes(32).toString("base64url");

test("reads names and keys, in base64 of either alphabet", () => {
  const keys = readBodyKeys([`2026:${KEY}`, `old.one:${OTHER}`]);
  expect(keys.map(({ name, key }) => [name, key.toString("base64")])).toEqual([
    ["2026", KEY],
    ["old.one", Buffer.from(OTHER, "base64url").toString("base64")],
  ]);
  expect(readBodyKeys(["plain", `old:${KEY}`]).map(({ name }) => name)).toEqual(["old"]);
  expect(faultsOfBodyKeys(["plain", `old:${KEY}`])).toEqual([]);
});

test("names every fault of the list, and never quotes a key", () => {
  const short = randomBytes(16).toString("base64");
  const wrong = [KEY, `a b:${KEY}`, `short:${short}`, `text:${KEY.slice(1)}!`, `plain:${KEY}`, `ok:${KEY}`];
  const read = () => readSettings({ env: { UKEMI_BODY_KEYS: wrong.join(",") } });
  const said = messageOf(read);
  expect(said.split("\n").map((line) => /key (\d)/.exec(line)?.[1])).toEqual(["1", "2", "3", "4", "5"]);
  expect(said).toMatch(/^UKEMI_BODY_KEYS \(key 1 of the list\) must have the form name:key\.$/m);
  expect(said).toMatch(/\(key 3 of the list\) must have a key of 32 bytes in base64/);
  for (const secret of [KEY, short]) expect(said).not.toContain(secret.slice(0, 12));
  expect(messageOf(() => checkSettings({ ...DEFAULTS, bodyKeys: [`a:${KEY}`, `a:${OTHER}`] }))).toBe(
    'bodyKeys must not name two keys "a".',
  );
  expect(messageOf(() => checkSettings({ ...DEFAULTS, bodyKeys: ["plain"] }))).toBe(
    "bodyKeys must name a key behind plain.",
  );
  expect(faultsOfBodyKeys([`a:${KEY}`, "plain"])).toHaveLength(1);
  expect(faultsOfBodyKeys("a")).toHaveLength(1);
  expect(faultsOfBodyKeys([7])).toHaveLength(1);
});

test("is shown only as set", () => {
  expect(showOption("bodyKeys", [`a:${KEY}`])).toBe("(1 set, hidden)");
});

function messageOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("nothing was thrown");
}
