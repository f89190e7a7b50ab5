import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { newDataKey, openContent, sealContent, unwrapKey, wrapKey } from "./sealing.ts";

const KEY = newDataKey("2026-11");
const CONTENT = { body: Buffer.from('{"email":"hanako@example.jp"}'), headers: '{"x":"ヘッダー"}' };

test("opens what it has sealed, also nothing and a megabyte", () => {
  expect(openContent(KEY, "event", sealContent(KEY, "event", CONTENT))).toEqual(CONTENT);
  for (const bytes of [0, 1024 * 1024]) {
    const content = { body: randomBytes(bytes), headers: "" };
    const sealed = sealContent(KEY, "event", content);
    expect(sealed.body).toHaveLength(bytes + 29);
    expect(openContent(KEY, "event", sealed)?.body.equals(content.body)).toBe(true);
  }
});

test("never seals the same content twice to the same bytes", () => {
  expect(sealContent(KEY, "event", CONTENT).body).not.toEqual(sealContent(KEY, "event", CONTENT).body);
});

test("opens nothing that was changed in any bit, cut short, moved or given another key", () => {
  const sealed = sealContent(KEY, "event", CONTENT);
  for (let bit = 0; bit < sealed.body.length * 8; bit++) {
    const body = Buffer.from(sealed.body);
    body[bit >> 3]! ^= 1 << (bit & 7);
    expect(openContent(KEY, "event", { ...sealed, body }), `bit ${bit}`).toBeUndefined();
  }
  for (let length = 0; length < sealed.body.length; length++) {
    const body = sealed.body.subarray(0, length);
    expect(openContent(KEY, "event", { ...sealed, body })).toBeUndefined();
  }
  const headers = Buffer.from(sealed.headers, "base64");
  headers[5]! ^= 1;
  expect(openContent(KEY, "event", { ...sealed, headers: headers.toString("base64") })).toBeUndefined();
  expect(openContent(KEY, "another", sealed)).toBeUndefined();
  expect(openContent(newDataKey("2026-11"), "event", sealed)).toBeUndefined();
  expect(openContent({ ...KEY, id: "2026-12" }, "event", sealed)).toBeUndefined();
  // a byte that goes from the headers to the body
  const longer = {
    body: Buffer.concat([sealed.body.subarray(0, 13), headers.subarray(-1), sealed.body.subarray(13)]),
    headers: Buffer.from(sealed.headers, "base64").subarray(0, -1).toString("base64"),
  };
  expect(openContent(KEY, "event", longer)).toBeUndefined();
  // headers in the place of the body
  const swapped = { body: Buffer.from(sealed.headers, "base64"), headers: sealed.body.toString("base64") };
  expect(openContent(KEY, "event", swapped)).toBeUndefined();
});

test("wraps a data key for one master key, under one id", () => {
  const master = { name: "a", key: randomBytes(32) };
  const wrapped = wrapKey(master, KEY);
  expect(unwrapKey(master, KEY.id, wrapped)).toEqual(KEY);
  expect(unwrapKey({ ...master, key: randomBytes(32) }, KEY.id, wrapped)).toBeUndefined();
  expect(unwrapKey({ ...master, name: "b" }, KEY.id, wrapped)).toBeUndefined();
  expect(unwrapKey(master, "2026-12", wrapped)).toBeUndefined();
  expect(wrapped.includes(KEY.key)).toBe(false);
});
