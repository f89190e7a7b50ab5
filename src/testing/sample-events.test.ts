import { expect, test } from "vitest";
import { sampleEvent, sampleEventTypes, sampleIds } from "./index.ts";

test.each([...sampleEventTypes])("writes %s as Stripe would: indented, in yen, of a usual size", (type) => {
  const body = sampleEvent(type);
  const event = JSON.parse(body);
  expect(body).toBe(JSON.stringify(event, null, 2));
  expect(event).toMatchObject({ object: "event", type, livemode: false });
  expect(event.id).toMatch(/^evt_[A-Za-z0-9]{24}$/);
  expect(event.data.object.currency).toBe("jpy");
  expect(Buffer.byteLength(body)).toBeGreaterThan(1000);
  expect(Buffer.byteLength(body)).toBeLessThan(4096);
});

test("knows the nine types that the guides use", () => {
  expect([...sampleEventTypes].toSorted()).toEqual([
    "charge.refunded",
    "charge.succeeded",
    "checkout.session.completed",
    "customer.subscription.updated",
    "invoice.paid",
    "invoice.payment_failed",
    "payment_intent.payment_failed",
    "payment_intent.succeeded",
    "refund.created",
  ]);
});

test("gives every event an id of its own", () => {
  const ids = Array.from({ length: 1000 }, () => JSON.parse(sampleEvent("refund.created")).id);
  expect(new Set(ids).size).toBe(1000);
});

test("takes what it is given", () => {
  const ids = sampleIds({ refund: "re_mine" });
  const options = { id: "evt_mine", livemode: true, account: "acct_1", created: 1_790_000_000, amount: 120 };
  const event = JSON.parse(sampleEvent("refund.created", { ...options, metadata: { order: "7" }, ids }));
  expect(event).toMatchObject({ id: "evt_mine", livemode: true, account: "acct_1", created: 1_790_000_000 });
  expect(event.data.object).toMatchObject({
    id: "re_mine",
    amount: 120,
    metadata: { order: "7" },
    charge: ids.charge,
  });
});

test.each(["customer.tax_id.created", "ping", "constructor", "__proto__"])(
  "has a plain object for %s",
  (type) => {
    const event = JSON.parse(sampleEvent(type));
    expect(event.type).toBe(type);
    expect(event.data.object).toMatchObject({ amount: 4800, currency: "jpy" });
  },
);
