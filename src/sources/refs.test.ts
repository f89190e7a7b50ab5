import { expect, test } from "vitest";
import { sampleEvent } from "../testing/sample-events.ts";
import { sampleIds } from "../testing/sale.ts";
import { addStripeRefs, createRefList, kindOfStripeId } from "./refs.ts";
import { stripe } from "./stripe.ts";

const ids = sampleIds();
const stripeRefs = (object: unknown) => {
  const refs = createRefList();
  addStripeRefs(refs, object);
  return refs.list;
};
const refsOf = (type: string, metadata = {}) => {
  const source = stripe({ secrets: ["whsec_x"], refs: { metadata: ["order_id"] } });
  const identity = source.identify({ headers: {}, body: Buffer.from(sampleEvent(type, { ids, metadata })) });
  return identity.refused === undefined ? identity.refs : [];
};

test.each([
  ["pi_3ABC", "payment_intent"],
  ["ch_3ABC", "charge"],
  ["py_3ABC", "charge"],
  ["cs_test_a1b2", "checkout_session"],
  ["cus_A", "customer"],
  ["in_1", "invoice"],
  ["sub_1", "subscription"],
  ["re_1", "refund"],
  ["pyr_1", "refund"],
])("takes %s for a %s", (id, kind) => {
  expect(kindOfStripeId(id)).toBe(kind);
});

test.each([
  "pi_3ABC_secret_xyz",
  "pi_",
  "pi-3ABC",
  "xpi_3ABC",
  "pi_3ABC\n",
  "https://x/pi_3ABC",
  "pi_3 ABC",
  `pi_${"a".repeat(253)}`,
  "evt_1",
])("takes %j for no id", (id) => {
  expect(kindOfStripeId(id)).toBeUndefined();
});

test("finds the ids of a sale in every sample of it", () => {
  const payment = { kind: "payment_intent", id: ids.paymentIntent };
  const customer = { kind: "customer", id: ids.customer };
  const charge = { kind: "charge", id: ids.charge };
  const invoice = { kind: "invoice", id: ids.invoice };
  const subscription = { kind: "subscription", id: ids.subscription };
  expect(refsOf("payment_intent.succeeded")).toEqual([payment, customer, charge]);
  expect(refsOf("charge.refunded")).toEqual([charge, customer, payment]);
  expect(refsOf("checkout.session.completed")).toEqual([
    { kind: "checkout_session", id: ids.checkoutSession },
    customer,
    payment,
  ]);
  expect(refsOf("invoice.paid")).toEqual([invoice, customer, subscription]);
  expect(refsOf("customer.subscription.updated")).toEqual([subscription, customer, invoice]);
  expect(refsOf("refund.created")).toEqual([{ kind: "refund", id: ids.refund }, charge, customer, payment]);
});

test("puts the metadata keys that were asked for first, and passes over the others", () => {
  const refs = refsOf("refund.created", { order_id: "order-7", note: "pi_3Other" });
  expect(refs[0]).toEqual({ kind: "order_id", id: "order-7" });
  expect(refs).toHaveLength(5);
});

test("names no case after words, or after what a buyer typed", () => {
  expect(
    stripeRefs({
      status: "in_transit",
      client_secret: "pi_3ABC",
      description: "pi_3ABC",
      client_reference_id: "pi_3ABC",
      custom_fields: [{ key: "order", text: { value: "pi_3ABC" } }],
      metadata: { customer: "cus_1" },
    }),
  ).toEqual([]);
});

test("finds ids in lists and in expanded objects, nearest first", () => {
  expect(stripeRefs({ refunds: ["re_1", { id: "re_2" }], customer: { id: "cus_1" } })).toEqual([
    { kind: "refund", id: "re_1" },
    { kind: "customer", id: "cus_1" },
    { kind: "refund", id: "re_2" },
  ]);
});

test("stops at 64 refs, at six levels, and in a list of a million", () => {
  const many = Array.from({ length: 1000 }, (_, n) => ({ id: `ch_${n}` }));
  expect(stripeRefs({ data: many })).toHaveLength(64);
  const nest = (levels: number): object => (levels === 0 ? { id: "pi_1" } : { next: nest(levels - 1) });
  expect(stripeRefs(nest(5))).toHaveLength(1);
  expect(stripeRefs(nest(6))).toHaveLength(0);
  expect(stripeRefs({ charges: Array.from({ length: 1_000_000 }, () => 1), id: "pi_1" })).toEqual([
    { kind: "payment_intent", id: "pi_1" },
  ]);
});

test("survives values whose conversion to text would throw", () => {
  const source = stripe({ secrets: ["whsec_x"], refs: { metadata: ["a"] } });
  const hostile = `{"id":"evt_1","object":"event","type":"a","livemode":true,"data":{"object":{"id":{"toString":1},
    "metadata":{"a":{"toString":1}}}},"related_object":{"id":{"toString":1},"type":{"toString":1}},"__proto__":{"x":1}}`;
  expect(source.identify({ headers: {}, body: Buffer.from(hostile) })).toHaveProperty("refs", []);
});
