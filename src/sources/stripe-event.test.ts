import { describe, expect, test } from "vitest";
import { sampleEvent } from "../testing/sample-events.ts";
import { identifyStripeEvent } from "./stripe-event.ts";
import type { StripeReading } from "./stripe-event.ts";

const nowSeconds = 1_790_000_000;

const identify = (event: object, reading: StripeReading = {}) =>
  identifyStripeEvent(Buffer.from(JSON.stringify(event)), reading);

const invoicePaid = (account?: string) =>
  JSON.parse(sampleEvent("invoice.paid", { metadata: { organiser: "o_1" }, ...(account && { account }) }));

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

  test.each([-1, 1e300, 253_402_300_800, "yesterday", "2026-13-45T00:00:00Z", {}, null])(
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
  test("comes from the metadata that was named", () => {
    expect(identify(invoicePaid(), { tenant: { metadata: "organiser" } })).toHaveProperty("tenant", "o_1");
    expect(identify(invoicePaid(), { tenant: { metadata: "constructor" } })).toHaveProperty("tenant", null);
  });

  test("comes from an invoice's subscription where the invoice has none", () => {
    const invoice = invoicePaid();
    invoice.data.object.metadata = {};
    invoice.data.object.parent.subscription_details.metadata = { organiser: "o_2" };
    expect(identify(invoice, { tenant: { metadata: "organiser" } })).toHaveProperty("tenant", "o_2");
  });

  test("is not taken from metadata that a connected account's holder could write", () => {
    const connected = invoicePaid("acct_1");
    expect(identify(connected, { tenant: { metadata: "organiser" } })).toHaveProperty("tenant", null);
    const trusted = { metadata: "organiser", connected: true };
    expect(identify(connected, { tenant: trusted })).toHaveProperty("tenant", "o_1");
  });

  test("comes from the account, or is fixed", () => {
    expect(identify(invoicePaid("acct_1"), { tenant: "account" })).toHaveProperty("tenant", "acct_1");
    expect(identify(invoicePaid(), { tenant: "account" })).toHaveProperty("tenant", null);
    expect(identify(invoicePaid(), { tenant: { fixed: "shop" } })).toHaveProperty("tenant", "shop");
  });
});
