import { describe, expect, test } from "vitest";
import { UkemiError } from "../../errors.ts";
import { readHttpIntent, type HttpMethod, type HttpRequest } from "./intent.ts";

const url = "https://api.example.com/v1/charges";

test("completes what was left out", () => {
  expect(readHttpIntent({ url })).toEqual({
    url,
    method: "POST",
    headers: {},
    idempotent: false,
    idempotencyHeader: "idempotency-key",
  });
});

test.each<[HttpMethod, boolean]>([
  ["GET", true],
  ["HEAD", true],
  ["PUT", true],
  ["DELETE", true],
  ["POST", false],
  ["PATCH", false],
])("takes %s for idempotent: %s, unless it is told otherwise", (method, idempotent) => {
  expect(readHttpIntent({ url, method })).toMatchObject({ method, idempotent });
  expect(readHttpIntent({ url, method, idempotent: !idempotent })).toMatchObject({ idempotent: !idempotent });
});

describe("the body", () => {
  test("a text is sent as it is", () => {
    const { body, headers } = readHttpIntent({ url, body: "a=1" });
    expect({ body, headers }).toEqual({ body: "a=1", headers: {} });
  });

  test("an object is sent as JSON, and says so unless a header says otherwise", () => {
    expect(readHttpIntent({ url, body: { a: [1] } })).toMatchObject({
      body: '{"a":[1]}',
      headers: { "content-type": "application/json" },
    });
    const headers = { "Content-Type": "application/vnd.api+json" };
    expect(readHttpIntent({ url, body: [1], headers })).toMatchObject({
      body: "[1]",
      headers: { "content-type": "application/vnd.api+json" },
    });
  });

  const ring: Record<string, unknown> = {};
  ring.ring = ring;
  test.each([
    ["a form", new URLSearchParams("a=1")],
    ["a map", new Map([["a", 1]])],
    ["a buffer", Buffer.from("a")],
    ["a date", new Date()],
    ["a number", 7],
    ["null", null],
    ["a ring", ring],
    ["a bigint inside", { a: 1n }],
    ["a text with NUL", "a\0b"],
  ])("%s is refused", (_, body) => {
    expect(() => readHttpIntent({ url, body: body as object })).toThrow(/plain object or array/);
  });

  test("a mebibyte is taken, counted in bytes, and no more", () => {
    expect(readHttpIntent({ url, body: "ü".repeat(512 * 1024) }).body).toHaveLength(512 * 1024);
    expect(() => readHttpIntent({ url, body: `${"ü".repeat(512 * 1024)}a` })).toThrow(/larger than 1048576/);
  });

  test.each<HttpMethod>(["GET", "HEAD"])("is refused with %s", (method) => {
    expect(() => readHttpIntent({ url, method, body: "a" })).toThrow(/left out/);
  });
});

describe("headers", () => {
  test("get lower-case names", () => {
    expect(
      readHttpIntent({ url, headers: { "X-Tenant": "acme", Authorization: "Bearer b" } }).headers,
    ).toEqual({
      "x-tenant": "acme",
      authorization: "Bearer b",
    });
  });

  test.each([
    ["Host", "a", /set by Ukemi/],
    ["content-length", "1", /set by Ukemi/],
    ["Transfer-Encoding", "chunked", /set by Ukemi/],
    ["Connection", "close", /set by Ukemi/],
    ["Expect", "100-continue", /set by Ukemi/],
    ["Idempotency-Key", "k", /every try/],
    ["x y", "a", /no valid name/],
    ["x:y", "a", /no valid name/],
    ["", "a", /no valid name/],
    ["x-a", "hunter2\r\nx-b: c", /line breaks/],
    ["x-a", "hunter2\n", /line breaks/],
    ["x-a", "hunter2 €", /Latin-1/],
    ["x-a", 7, /a text/],
    ["x-a", ["hunter2"], /a text/],
    ["x-a", "hunter2".repeat(2000), /longer than 8192/],
  ])("%j with %j is refused", (name, value, words) => {
    const given = { url, headers: { [name]: value } } as HttpRequest;
    expect(() => readHttpIntent(given)).toThrow(UkemiError);
    expect(() => readHttpIntent(given)).toThrow(words);
    expect(() => readHttpIntent(given)).not.toThrow(/hunter2/);
  });

  test("one that is there twice is refused", () => {
    expect(() => readHttpIntent({ url, headers: { "x-a": "1", "X-A": "2" } })).toThrow(/twice/);
  });

  test("the name of a prototype's member is a name like others", () => {
    const headers = JSON.parse('{"__proto__":"a","constructor":"b"}') as Record<string, string>;
    expect(Object.entries(readHttpIntent({ url, headers }).headers)).toEqual(Object.entries(headers));
  });

  test("the one for the key can be named, and is then refused in its turn", () => {
    const idempotencyHeader = "X-Request-Key";
    expect(readHttpIntent({ url, idempotencyHeader })).toMatchObject({ idempotencyHeader: "x-request-key" });
    expect(() => readHttpIntent({ url, idempotencyHeader, headers: { "x-request-KEY": "a" } })).toThrow(
      /every try/,
    );
    expect(() => readHttpIntent({ url, idempotencyHeader: "a b" })).toThrow(/idempotencyHeader/);
    expect(() => readHttpIntent({ url, idempotencyHeader: "host" })).toThrow(/idempotencyHeader/);
  });
});

test.each([
  [undefined, /an object/],
  [null, /an object/],
  [{}, /url must be/],
  [{ url: "https://u:p@api.example.com" }, /Authorization/],
  [{ url, method: "post" }, /method must be one of GET/],
  [{ url, method: "CONNECT" }, /method must be one of GET/],
  [{ url, idempotent: "yes" }, /true or false/],
  [{ url, headers: [] }, /headers must be an object/],
  [{ url, headers: new Headers({ a: "b" }) }, /headers must be an object/],
  [{ url, headers: new Map([["a", "b"]]) }, /headers must be an object/],
])("refuses %o", (given, words) => {
  expect(() => readHttpIntent(given as HttpRequest)).toThrow(words);
});
