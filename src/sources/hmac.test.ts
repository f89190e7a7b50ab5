import { createHash, createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { UkemiError } from "../errors.ts";
import { signHmac } from "../testing/sign.ts";
import { hmac } from "./hmac.ts";
import type { HmacOptions } from "./hmac.ts";

const nowMs = 1_790_000_000_000;
const plain: HmacOptions = { secrets: ["s"], header: "X-Signature", id: "body-sha256", type: "ping" };

test("receives from GitHub (its documented example)", () => {
  const source = hmac({
    secrets: ["It's a Secret to Everybody"],
    header: "X-Hub-Signature-256",
    prefix: "sha256=",
    id: { header: "X-GitHub-Delivery" },
    type: { header: "X-GitHub-Event" },
  });
  const request = {
    headers: {
      "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
      "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
      "x-github-event": "push",
    },
    body: Buffer.from("Hello, World!"),
  };
  expect(source.verify(request, nowMs)).not.toHaveProperty("refused");
  expect(source.identify(request)).toMatchObject({
    eventId: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    type: "push",
  });
});

test("receives from Slack (its documented example)", () => {
  const source = hmac({
    secrets: ["8f742231b10e8888abcd99yyyzzz85a5"],
    header: "x-slack-signature",
    prefix: "v0=",
    timestamp: { header: "x-slack-request-timestamp", message: "v0:{timestamp}:{body}" },
    id: "body-sha256",
    type: "command",
  });
  const body = Buffer.from(
    "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
  );
  const headers = {
    "x-slack-request-timestamp": "1531420618",
    "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
  };
  expect(source.verify({ headers, body }, 1_531_420_618_000)).not.toHaveProperty("refused");
  expect(source.verify({ headers, body }, nowMs)).toMatchObject({ refused: "stale" });
});

test.each([
  ["sha1", "hex"],
  ["sha256", "base64"],
  ["sha512", "base64url"],
] as const)("checks %s written as %s", (algorithm, encoding) => {
  const source = hmac({ ...plain, algorithm, encoding });
  const body = Buffer.from([0, 255, 128]);
  const signature = createHmac(algorithm, "s").update(body).digest(encoding);
  expect(source.verify({ headers: { "x-signature": signature }, body }, nowMs)).not.toHaveProperty("refused");
  expect(signHmac(body, "s", { header: "X-Signature", algorithm, encoding })).toEqual({
    "x-signature": signature,
  });
  for (const wrong of [`${signature}=`, `${signature} `, signature.slice(2)]) {
    expect(source.verify({ headers: { "x-signature": wrong }, body }, nowMs)).toMatchObject({
      refused: "signature_malformed",
    });
  }
});

test("reads a time in milliseconds", () => {
  const timestamp = { header: "x-time", unit: "milliseconds", toleranceSeconds: 60 } as const;
  const source = hmac({ ...plain, timestamp });
  const at = (value: number) =>
    source.verify(
      {
        headers: signHmac("x", "s", { header: "x-signature", timestamp: { header: "x-time", value } }),
        body: Buffer.from("x"),
      },
      nowMs,
    );
  expect(at(nowMs - 59_000)).not.toHaveProperty("refused");
  expect(at(nowMs - 61_000)).toMatchObject({ refused: "stale" });
  expect(at(nowMs + 61_000)).toMatchObject({ refused: "future" });
});

test("accepts any bytes where nothing is read from the body", () => {
  const body = Buffer.from([0, 255]);
  const eventId = createHash("sha256").update(body).digest("hex");
  expect(hmac(plain).identify({ headers: {}, body })).toMatchObject({ eventId, type: "ping" });
});

test("reads ids by path, whole numbers only while they are exact", () => {
  const source = hmac({ ...plain, id: { path: "data.0.id" }, tenant: { path: "shop" } });
  const identify = (text: string) => source.identify({ headers: {}, body: Buffer.from(text) });
  expect(identify('{"data":[{"id":7}],"shop":"a"}')).toMatchObject({
    eventId: "7",
    account: "a",
    tenant: "a",
  });
  for (const id of ["9007199254740993", "1.5", "null", "{}", '""']) {
    expect(identify(`{"data":[{"id":${id}}]}`)).toMatchObject({ refused: "invalid_payload" });
  }
});

test("takes nothing that is inherited for content", () => {
  for (const path of ["constructor.name", "__proto__.constructor.name"]) {
    const source = hmac({ ...plain, id: { path } });
    const body = Buffer.from("{}");
    expect(source.identify({ headers: {}, body })).toMatchObject({ refused: "invalid_payload" });
  }
  const source = hmac({ ...plain, type: { header: "constructor" } });
  expect(source.identify({ headers: {}, body: Buffer.from("") })).toMatchObject({
    refused: "invalid_payload",
  });
});

test("refuses an id header that is missing or sent twice", () => {
  const source = hmac({ ...plain, id: { header: "x-id" } });
  for (const headers of [{}, { "x-id": ["a", "b"] }, { "x-id": "" }]) {
    expect(source.identify({ headers, body: Buffer.from("") })).toMatchObject({ refused: "invalid_payload" });
  }
});

test.each([
  ["an unsigned time", { timestamp: { header: "t", message: "{body}" } }],
  ["a message without the body", { timestamp: { header: "t", message: "{timestamp}" } }],
  ["a message with the body twice", { timestamp: { header: "t", message: "{timestamp}{body}{body}" } }],
  ["an unknown algorithm", { algorithm: "md5" }],
  ["an unknown encoding", { encoding: "utf8" }],
  ["a header that is none", { header: "x signature" }],
  ["no id", { id: undefined }],
  ["an id of unknown kind", { id: "uuid" }],
  ["a blank type", { type: "" }],
  ["a broken path", { id: { path: "a..b" } }],
  ["a broken ref", { refs: { order: "" } }],
  ["a blank tenant", { tenant: { fixed: "" } }],
  ["blank secrets", { secrets: [""] }],
])("refuses options with %s", (_, wrong) => {
  expect(() => hmac({ ...plain, ...(wrong as object) })).toThrow(UkemiError);
});
