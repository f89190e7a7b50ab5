import Stripe from "stripe";
import { describe, expect, test } from "vitest";
import { UkemiError } from "../errors.ts";
import { signStripe } from "../testing/sign.ts";
import { sampleEvent, sampleEventTypes } from "../testing/sample-events.ts";
import { stripe } from "./stripe.ts";
import type { StripeOptions } from "./stripe.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const nowSeconds = 1_790_000_000;
const body = sampleEvent("payment_intent.succeeded", { created: nowSeconds });
const source = stripe({ secrets: [secret] });

const verify = (header: string, text = body) =>
  source.verify({ headers: { "stripe-signature": header }, body: Buffer.from(text) }, nowSeconds * 1000);
const header = signStripe(body, secret, { timestamp: nowSeconds })["stripe-signature"];
const digest = header.split("v1=")[1]!;

const identify = (event: object, options: Partial<StripeOptions> = {}) =>
  stripe({ secrets: [secret], ...options }).identify({
    headers: {},
    body: Buffer.from(JSON.stringify(event)),
  });

describe("the signature", () => {
  test.each(["plain", "親子で参加 👨‍👩‍👧 \u2028"])("accepts what the official SDK signs (%s)", (description) => {
    const payload = JSON.stringify({ id: "evt_1", object: "event", description }, null, 2);
    const signed = Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp: nowSeconds });
    expect(verify(signed, payload)).not.toHaveProperty("refused");
  });

  test.each(sampleEventTypes)("signs the sample %s so that the official SDK accepts it", (type) => {
    const sample = sampleEvent(type);
    const signed = signStripe(sample, secret)["stripe-signature"];
    expect(Stripe.webhooks.constructEvent(Buffer.from(sample), signed, secret)).toHaveProperty("type", type);
  });

  test.each([
    ["an unknown scheme and v0 beside a good v1", `${header},v0=${"0".repeat(64)},v2=x,=,foo`],
    ["a malformed v1 beside a good one", `t=${nowSeconds},v1=,v1=${digest}`],
  ])("accepts %s", (_, value) => {
    expect(verify(value)).not.toHaveProperty("refused");
  });

  test.each([
    ["only v0", `t=${nowSeconds},v0=${digest}`],
    ["an empty v1", `t=${nowSeconds},v1=`],
    ["64 characters with one that is not ASCII", `t=${nowSeconds},v1=é${digest.slice(1)}`],
    ["upper-case hex", `t=${nowSeconds},v1=${digest.toUpperCase()}`],
    ["a space after the comma", `t=${nowSeconds}, v1=${digest}`],
    ["63 digits", `t=${nowSeconds},v1=${digest.slice(1)}`],
    ["no time", `v1=${digest}`],
    ["two times", `t=${nowSeconds},t=${nowSeconds},v1=${digest}`],
    ["a time that is not a number", `t=NaN,v1=${digest}`],
    ["a negative time", `t=-1,v1=${digest}`],
    ["a time with an exponent", `t=1.79e9,v1=${digest}`],
    ["a time in hex", `t=0x6AB13B80,v1=${digest}`],
    ["a time with a leading zero", `t=0${nowSeconds},v1=${digest}`],
    ["an endless time", `t=${"9".repeat(400)},v1=${digest}`],
    ["nothing but commas", ",,,,"],
    ["a huge header", `${header},${"v1=0,".repeat(10_000)}`],
  ])("refuses %s as malformed", (_, value) => {
    expect(verify(value)).toMatchObject({ refused: "signature_malformed" });
  });

  test("takes the whole text of the secret, whsec_ included", () => {
    const bare = signStripe(body, secret.replace("whsec_", ""), { timestamp: nowSeconds });
    expect(verify(bare["stripe-signature"])).toMatchObject({ refused: "wrong_secret" });
  });

  test("does not try to restore bodies above 64 KiB", () => {
    const large = { id: "evt_1", text: "x".repeat(65 * 1024) };
    const signed = signStripe(JSON.stringify(large, null, 2), secret, { timestamp: nowSeconds });
    expect(verify(signed["stripe-signature"], JSON.stringify(large))).toMatchObject({
      refused: "wrong_secret",
    });
  });

  test("quotes neither the secret, nor the signature, nor the body in a diagnosis", () => {
    const forged = `t=${nowSeconds},v1=${"ab".repeat(32)}`;
    for (const refusal of [verify(forged), verify(header, "{ secret-content"), verify("nonsense")]) {
      expect(JSON.stringify(refusal)).not.toMatch(/whsec|MfKQ|abab|secret-content|nonsense|pi_/);
    }
  });
});

describe("the options", () => {
  test.each([
    ["none", []],
    ["undefined", [undefined]],
    ["blank", [" "]],
    ["empty", [""]],
    ["with a newline", [`${secret}\n`]],
    ["with a leading space", [` ${secret}`]],
    ["an API key", ["sk_live_MfKQ9r8GKYq"]],
    ["a good one and a blank one", [secret, ""]],
  ])("refuses secrets: %s", (_, secrets) => {
    const make = () => stripe({ secrets: secrets as string[] });
    expect(make).toThrow(UkemiError);
    expect(make).toThrow(expect.objectContaining({ code: "invalid_option" }));
    expect(make).not.toThrow(/MfKQ/);
  });

  test.each([0, -1, NaN, Infinity, 1.5])("refuses a tolerance of %s seconds", (toleranceSeconds) => {
    expect(() => stripe({ secrets: [secret], toleranceSeconds })).toThrow(/toleranceSeconds/);
  });

  test("refuses an address list that cannot be read", () => {
    expect(() => stripe({ secrets: [secret], allowedAddresses: ["stripe.com"] })).toThrow(/allowedAddresses/);
  });

  test.each([{ livemode: "true" }, { tenant: { fixed: "" } }, { tenant: {} }])("refuses %j", (wrong) => {
    expect(() => stripe({ secrets: [secret], ...(wrong as object) })).toThrow(UkemiError);
  });
});

describe("the identity", () => {
  const event = { id: "evt_1", object: "event", type: "a.b", livemode: true, created: nowSeconds };

  test("reads a snapshot event", () => {
    expect(identify(event)).toEqual({
      eventId: "evt_1",
      type: "a.b",
      account: "",
      livemode: true,
      tenant: null,
      occurredAt: new Date(nowSeconds * 1000),
      refs: [],
    });
  });

  test("reads a thin event", () => {
    const thin = {
      id: "evt_test_65",
      object: "v2.core.event",
      type: "v1.billing.meter.no_meter_found",
      livemode: false,
      created: "2026-10-20T03:05:00.123Z",
      context: "org_1/acct_2",
      related_object: { id: "mtr_1", type: "billing.meter", url: "/v1/billing/meters/mtr_1" },
    };
    expect(identify(thin)).toMatchObject({
      eventId: "evt_test_65",
      account: "org_1/acct_2",
      occurredAt: new Date("2026-10-20T03:05:00.123Z"),
      refs: [{ kind: "billing.meter", id: "mtr_1" }],
    });
    const customer = { ...thin, related_object: { id: "cus_1", type: "customer" } };
    expect(identify(customer)).toHaveProperty("refs", [{ kind: "customer", id: "cus_1" }]);
  });

  test("takes the connected account before the context", () => {
    expect(identify({ ...event, account: "acct_1", context: "acct_2" })).toHaveProperty("account", "acct_1");
    expect(identify({ ...event, account: null, context: null })).toHaveProperty("account", "");
  });

  test.each([-1, 1e300, "yesterday", "2026-13-45T00:00:00Z", {}, null])(
    "passes over created: %j",
    (created) => {
      expect(identify({ ...event, created })).toHaveProperty("occurredAt", null);
    },
  );

  test.each([
    ["no id", { id: undefined }],
    ["a numeric id", { id: 7 }],
    ["an id of 256 bytes", { id: "a".repeat(256) }],
    ["an id of 258 bytes in 86 characters", { id: "あ".repeat(86) }],
    ["an id with NUL", { id: "evt_\u0000" }],
    ["an id with a newline", { id: "evt_\n" }],
    ["an id with a lone surrogate", { id: "evt_\ud800" }],
    ["no type", { type: undefined }],
    ["an empty type", { type: "" }],
    ["an account that is an object", { account: {} }],
    ["an account that is too long", { account: "a".repeat(256) }],
    ["no livemode", { livemode: undefined }],
    ["another object", { object: "charge" }],
  ])("refuses an event with %s", (_, change) => {
    expect(identify({ ...event, ...change })).toMatchObject({ refused: "invalid_payload" });
  });

  test("skips the other mode, and only where one was asked for", () => {
    expect(identify(event, { livemode: true })).not.toHaveProperty("skip");
    expect(identify({ ...event, livemode: false })).not.toHaveProperty("skip");
    expect(identify({ ...event, livemode: false }, { livemode: true })).toHaveProperty(
      "skip",
      "a test event; this source works on live events only",
    );
    expect(identify(event, { livemode: false })).toHaveProperty("skip");
  });
});

describe("the tenant", () => {
  const event = (account?: string) =>
    JSON.parse(sampleEvent("invoice.paid", { metadata: { organiser: "o_1" }, ...(account && { account }) }));

  test("comes from the metadata that was named", () => {
    expect(identify(event(), { tenant: { metadata: "organiser" } })).toHaveProperty("tenant", "o_1");
    expect(identify(event(), { tenant: { metadata: "constructor" } })).toHaveProperty("tenant", null);
  });

  test("comes from an invoice's subscription where the invoice has none", () => {
    const invoice = event();
    invoice.data.object.metadata = {};
    invoice.data.object.parent.subscription_details.metadata = { organiser: "o_2" };
    expect(identify(invoice, { tenant: { metadata: "organiser" } })).toHaveProperty("tenant", "o_2");
  });

  test("is not taken from metadata that a connected account's holder could write", () => {
    const connected = event("acct_1");
    expect(identify(connected, { tenant: { metadata: "organiser" } })).toHaveProperty("tenant", null);
    const trusted = { metadata: "organiser", connected: true };
    expect(identify(connected, { tenant: trusted })).toHaveProperty("tenant", "o_1");
  });

  test("comes from the account, or is fixed", () => {
    expect(identify(event("acct_1"), { tenant: "account" })).toHaveProperty("tenant", "acct_1");
    expect(identify(event(), { tenant: "account" })).toHaveProperty("tenant", null);
    expect(identify(event(), { tenant: { fixed: "shop" } })).toHaveProperty("tenant", "shop");
  });
});
