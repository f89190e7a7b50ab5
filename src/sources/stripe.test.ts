import { Stripe } from "stripe";
import { describe, expect, test } from "vitest";
import { UkemiError } from "../errors.ts";
import { signStripe } from "../testing/sign.ts";
import { sampleEvent, sampleEventTypes } from "../testing/sample-events.ts";
import { stripe } from "./stripe.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const nowSeconds = 1_790_000_000;
const body = sampleEvent("payment_intent.succeeded", { created: nowSeconds });
const source = stripe({ secrets: [secret] });

const verify = (header: string, text = body) =>
  source.verify({ headers: { "stripe-signature": header }, body: Buffer.from(text) }, nowSeconds * 1000);
const header = signStripe(body, secret, { timestamp: nowSeconds })["stripe-signature"];
const digest = header.split("v1=")[1]!;

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
