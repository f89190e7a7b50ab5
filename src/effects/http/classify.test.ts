import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, test } from "vitest";
import { classify } from "./classify.ts";
import type { Answer } from "./exchange.ts";

interface Said {
  readonly headers?: IncomingHttpHeaders;
  readonly body?: string | Buffer;
  readonly ended?: Answer["ended"];
  readonly idempotent?: boolean;
}

function meaning(
  status: number,
  { headers = {}, body = "", ended = "whole", idempotent = false }: Said = {},
) {
  const answer: Answer = { status, headers, body: Buffer.from(body), ended };
  return classify(answer, { url: "https://api.example.com/v1/charges?token=hunter2", idempotent });
}

const JSON_TYPE = { "content-type": "application/json; charset=utf-8" };
const PROBLEM_TYPE = { "content-type": "application/problem+json" };

test.each([
  ...[200, 201, 202, 204, 299].map((status) => [status, "done"] as const),
  ...[300, 301, 302, 303, 304, 307, 308].map((status) => [status, "failed"] as const),
  ...[400, 402, 404, 405, 407, 409, 410, 413, 418, 422, 451, 499].map(
    (status) => [status, "failed"] as const,
  ),
  ...[401, 403].map((status) => [status, "blocked"] as const),
  ...[408, 425, 429].map((status) => [status, "again"] as const),
  ...[500, 503, 507, 520, 529, 599].map((status) => [status, "again"] as const),
  ...[501, 505, 600, 999].map((status) => [status, "failed"] as const),
])("%d is %s", (status, is) => {
  const result = meaning(status);
  expect(result.is).toBe(is);
  if (result.is !== "done") {
    expect(result.fault.class).toBe(`HTTP ${status}`);
    expect(result.fault.message).toContain(`The peer answered ${status}.`);
  }
});

test("409 is tried again where the peer knows the key: the first request may still be in progress", () => {
  expect(meaning(409, { idempotent: true, headers: { "retry-after": "9" } })).toEqual({
    is: "again",
    fault: { class: "HTTP 409", message: expect.stringMatching(/in progress/) },
  });
});

test.each([502, 504])("%d of a gateway is uncertain, unless the peer knows the key", (status) => {
  expect(meaning(status).is).toBe("uncertain");
  expect(meaning(status, { idempotent: true }).is).toBe("again");
});

test("410 says that the destination is gone", () => {
  expect(meaning(410)).toMatchObject({ fault: { message: expect.stringMatching(/gone/) } });
});

describe("the pause that the peer asks for", () => {
  test.each([408, 425, 429, 500, 503])("is read in seconds with %d", (status) => {
    expect(meaning(status, { headers: { "retry-after": "120" } })).toMatchObject({ pauseMs: 120_000 });
  });

  test("is read as a date, by the peer's own clock", () => {
    const headers = {
      date: "Wed, 21 Oct 2015 07:28:00 GMT",
      "retry-after": "Wed, 21 Oct 2015 07:29:30 GMT",
    };
    expect(meaning(503, { headers })).toMatchObject({ pauseMs: 90_000 });
  });

  test.each([undefined, "soon", "-1", ""])("is not there where it says %j", (said) => {
    expect(meaning(503, { headers: said === undefined ? {} : { "retry-after": said } })).not.toHaveProperty(
      "pauseMs",
    );
  });
});

describe("a redirect", () => {
  test.each([
    ["https://other.example.com/a?token=hunter2", "other.example.com"],
    ["https://u:hunter2@other.example.com:8443/", "other.example.com:8443"],
    ["//other.example.com/hunter2", "other.example.com"],
    ["/hunter2", "api.example.com"],
    ["https://[", "elsewhere"],
    ["data:hunter2", "elsewhere"],
    [undefined, "elsewhere"],
  ])("to %s points to %s, and says no more", (location, where) => {
    const result = meaning(302, { headers: location === undefined ? {} : { location } });
    expect(result).toMatchObject({
      is: "failed",
      fault: { message: expect.stringContaining(`to ${where};`) },
    });
    expect(JSON.stringify(result)).not.toContain("hunter2");
  });
});

describe("a problem document", () => {
  test("is told in the message, and kept without what is not known", () => {
    const document = {
      type: "https://example.com/problems/limit",
      title: "Too many charges",
      status: 429,
      detail: "At most 5 a second",
      code: "limit_reached",
      instance: "/accounts/7",
      customer: { email: "ann@example.com" },
    };
    expect(meaning(429, { headers: PROBLEM_TYPE, body: JSON.stringify(document) })).toEqual({
      is: "again",
      fault: {
        class: "HTTP 429",
        message: "The peer answered 429. It says: Too many charges: At most 5 a second",
        answer: {
          type: "https://example.com/problems/limit",
          title: "Too many charges",
          status: 429,
          detail: "At most 5 a second",
          code: "limit_reached",
        },
      },
    });
  });

  test("carries no secret, no address and no line break", () => {
    const detail = "Bearer abc.def\r\nof ann@example.com with sk_live_4242 from 10.0.0.7";
    const result = meaning(400, {
      headers: PROBLEM_TYPE,
      body: JSON.stringify({ title: "No", detail, code: "sk_test_1" }),
    });
    expect(JSON.stringify(result)).not.toMatch(/abc\.def|ann@|sk_live|sk_test|10\.0\.0|\\n/);
  });

  test("is bounded, and a secret that lies across the bound is not kept in part", () => {
    const detail = `${"x ".repeat(480)}whsec_${"s".repeat(5000)}`;
    const result = meaning(400, {
      headers: PROBLEM_TYPE,
      body: JSON.stringify({ title: "t".repeat(5000), detail }),
    });
    expect(JSON.stringify(result)).not.toContain("sss");
    expect(result).toMatchObject({ fault: { message: expect.not.stringMatching(/^.{1001}/) } });
    expect(JSON.stringify(result).length).toBeLessThan(2500);
  });

  test.each(["", "{", "null", "7", '"text"', "[]", '{"title":{"a":1},"detail":null,"status":"9"}'])(
    "that is none (%s) is left out",
    (body) => expect(meaning(400, { headers: PROBLEM_TYPE, body })).not.toHaveProperty("fault.answer"),
  );

  test("is not looked for in what is no JSON", () => {
    const headers = { "content-type": "text/html" };
    expect(meaning(400, { headers, body: '{"title":"t"}' })).not.toHaveProperty("fault.answer");
  });
});

describe("the receipt", () => {
  test("keeps the text of the body, and by what the peer finds the request again", () => {
    const headers = {
      ...JSON_TYPE,
      "request-id": "req_1",
      "set-cookie": ["a=b"],
      "x-api-key": "k",
      "cf-ray": "r".repeat(500),
    };
    expect(meaning(201, { headers, body: '{"id":"ch_1"}' })).toEqual({
      is: "done",
      receipt: {
        status: 201,
        headers: { "request-id": "req_1", "cf-ray": "r".repeat(200) },
        contentType: "application/json",
        body: '{"id":"ch_1"}',
      },
    });
  });

  test.each([
    ["application/octet-stream", undefined],
    ["image/png", undefined],
    [undefined, undefined],
    ["application/json", "gzip"],
  ])("keeps no body of %s (%s)", (type, encoding) => {
    const headers = {
      ...(type === undefined ? {} : { "content-type": type }),
      ...(encoding === undefined ? {} : { "content-encoding": encoding }),
    };
    expect(meaning(200, { headers, body: "bytes" })).toEqual({ is: "done", receipt: { status: 200 } });
  });

  test("keeps no half of a character, and no NUL", () => {
    const body = Buffer.concat([Buffer.from("a\0b"), Buffer.from("€").subarray(0, 2)]);
    const headers = { "content-type": "text/plain" };
    expect(meaning(200, { headers, body, ended: "cut" })).toMatchObject({
      receipt: { body: "a\uFFFDb", bodyCut: true },
    });
  });
});

test("an answer of which the rest did not come is uncertain where it began well, and else what its status says", () => {
  expect(meaning(200, { ended: "broken" })).toMatchObject({ is: "uncertain", fault: { class: "HTTP 200" } });
  expect(meaning(503, { ended: "broken" })).toMatchObject({ is: "again" });
  expect(meaning(422, { ended: "broken" })).toMatchObject({ is: "failed" });
});
