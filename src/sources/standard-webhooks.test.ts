import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { UkemiError } from "../errors.ts";
import { signStandardWebhooks } from "../testing/sign.ts";
import { standardWebhooks } from "./standard-webhooks.ts";
import type { StandardWebhooksOptions } from "./standard-webhooks.ts";

const key = Buffer.alloc(32, 7);
const secret = `whsec_${key.toString("base64")}`;
const nowSeconds = Math.floor(Date.now() / 1000);
const body = JSON.stringify({ type: "order.paid", timestamp: "2026-10-20T03:05:00Z", data: { shop: "s_1" } });

const make = (options: Partial<StandardWebhooksOptions> = {}) =>
  standardWebhooks({ secrets: [secret], ...options });
const verify = (headers: Record<string, string>, text = body) =>
  make().verify({ headers, body: Buffer.from(text) }, Date.now());
const identify = (text: string, options: Partial<StandardWebhooksOptions> = {}) =>
  make(options).identify({
    headers: signStandardWebhooks(text, secret, { id: "msg_1", timestamp: nowSeconds }),
    body: Buffer.from(text),
  });

test.each([body, '{"type":"親子","text":"👨‍👩‍👧"}', ""])("agrees with the official library on %s", (payload) => {
  const signature = new Webhook(secret).sign("msg_1", new Date(nowSeconds * 1000), payload);
  const theirs = {
    "webhook-id": "msg_1",
    "webhook-timestamp": String(nowSeconds),
    "webhook-signature": signature,
  };
  expect(verify(theirs, payload)).not.toHaveProperty("refused");
  expect(signStandardWebhooks(payload, secret, { id: "msg_1", timestamp: nowSeconds })).toEqual(theirs);
  expect(() => new Webhook(secret).verify(payload, signStandardWebhooks(payload, secret))).not.toThrow();
});

test("ignores other schemes beside a good v1, and accepts none of them alone", () => {
  const headers = signStandardWebhooks(body, secret);
  const signature = headers["webhook-signature"];
  expect(verify({ ...headers, "webhook-signature": `v1a,AAAA ${signature}` })).not.toHaveProperty("refused");
  const renamed = signature.replace("v1,", "v1a,");
  expect(verify({ ...headers, "webhook-signature": renamed })).toMatchObject({
    refused: "signature_malformed",
  });
});

test("refuses another id or time than the signed one", () => {
  const headers = signStandardWebhooks(body, secret, { timestamp: nowSeconds });
  expect(verify({ ...headers, "webhook-id": "msg_other" })).toMatchObject({ refused: "wrong_secret" });
  expect(verify({ ...headers, "webhook-timestamp": String(nowSeconds + 1) })).toMatchObject({
    refused: "wrong_secret",
  });
  for (const time of ["NaN", "-1", "1e9", `${nowSeconds}.0`]) {
    expect(verify({ ...headers, "webhook-timestamp": time })).toMatchObject({
      refused: "signature_malformed",
    });
  }
});

test("reads Svix's names, and takes the id that was signed", () => {
  const signed = signStandardWebhooks(body, secret, { id: "msg_svix" });
  const svix = Object.fromEntries(
    Object.entries(signed).map(([name, value]) => [name.replace("webhook", "svix"), value]),
  );
  expect(verify(svix)).not.toHaveProperty("refused");
  const request = { headers: { ...signed, "svix-id": "msg_forged" }, body: Buffer.from(body) };
  expect(make().verify(request, Date.now())).not.toHaveProperty("refused");
  expect(make().identify(request)).toHaveProperty("eventId", "msg_svix");
});

test("reads id, type and time; without a time in the body it takes the signed one", () => {
  expect(identify(body)).toEqual({
    eventId: "msg_1",
    type: "order.paid",
    account: "",
    livemode: true,
    tenant: null,
    occurredAt: new Date("2026-10-20T03:05:00Z"),
    refs: [],
  });
  expect(identify('{"type":"a","timestamp":"soon"}')).toHaveProperty(
    "occurredAt",
    new Date(nowSeconds * 1000),
  );
  expect(identify('{"event":{"name":"x"}}', { type: "event.name" })).toHaveProperty("type", "x");
  expect(identify("{}")).toMatchObject({ refused: "invalid_payload" });
});

test("makes the tenant of the body the account too, so that two tenants' ids never collide", () => {
  const options = { tenant: { path: "data.shop" }, refs: { shop: "data.shop" } };
  expect(identify(body, options)).toMatchObject({
    tenant: "s_1",
    account: "s_1",
    refs: [{ kind: "shop", id: "s_1" }],
  });
  expect(identify('{"type":"a"}', options)).toMatchObject({ tenant: null, account: "" });
  expect(identify('{"type":"a","data":{"shop":{}}}', options)).toMatchObject({ refused: "invalid_payload" });
  expect(identify(body, { tenant: { fixed: "me" } })).toMatchObject({ tenant: "me", account: "" });
});

test.each([
  ["too short", `whsec_${Buffer.alloc(23).toString("base64")}`],
  ["too long", `whsec_${Buffer.alloc(65).toString("base64")}`],
  ["not base64", "whsec_****"],
  ["a public key", "whpk_AAAA"],
])("refuses a secret that is %s", (_, wrong) => {
  expect(() => standardWebhooks({ secrets: [wrong] })).toThrow(UkemiError);
  expect(() => standardWebhooks({ secrets: [wrong] })).not.toThrow(wrong.slice(6));
});

test("takes secrets of 24 and 64 bytes, with and without whsec_", () => {
  for (const bytes of [24, 64]) {
    const text = Buffer.alloc(bytes, 9).toString("base64");
    expect(() => standardWebhooks({ secrets: [text, `whsec_${text}`] })).not.toThrow();
  }
});
