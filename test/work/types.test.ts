// The types that a handler sees, checked by the compiler.
import type { Stripe } from "stripe";
import { expectTypeOf, test } from "vitest";
import { createUkemi, hmac, stripe, type HandlerTransaction } from "../../src/index.ts";

interface Shipped {
  readonly type: "order.shipped";
  readonly parcel: string;
}
interface Returned {
  readonly type: "order.returned";
  readonly reason: string;
}

const ukemi = createUkemi({
  sources: {
    stripe: stripe({ secrets: ["whsec_test_0123456789abcdef"] }),
    shop: hmac<Shipped | Returned>({
      secrets: ["0123456789abcdef0123456789abcdef"],
      header: "x-signature",
      id: { path: "id" },
      type: { path: "type" },
    }),
    other: hmac({
      secrets: ["0123456789abcdef0123456789abcdef"],
      header: "x-signature",
      id: { path: "id" },
      type: { path: "type" },
    }),
  },
  logLevel: "silent",
});

test("a Stripe event has the type that the SDK gives it", () => {
  ukemi.on("stripe", "payment_intent.succeeded", ({ event, tx }) => {
    expectTypeOf(event.data.object).toEqualTypeOf<Stripe.PaymentIntent>();
    expectTypeOf(event.link).toBeFunction();
    expectTypeOf(tx).toEqualTypeOf<HandlerTransaction>();
  });
  ukemi.on("stripe", "invoice.paid", ({ event }) => {
    expectTypeOf(event.data.object).toEqualTypeOf<Stripe.Invoice>();
  });
});

test("a pattern gives the union of what it covers", () => {
  ukemi.on("stripe", "payment_intent.*", ({ event }) => {
    expectTypeOf(event.data.object).toEqualTypeOf<Stripe.PaymentIntent>();
    expectTypeOf<"payment_intent.canceled">().toExtend<typeof event.type>();
  });
  ukemi.on("shop", "order.*", ({ event }) => {
    expectTypeOf(event.type).toEqualTypeOf<"order.shipped" | "order.returned">();
  });
});

test("events of one's own are told apart by their type", () => {
  ukemi.on("shop", "order.shipped", ({ event }) => {
    expectTypeOf(event.parcel).toEqualTypeOf<string>();
  });
});

test("an event that nobody described is an object of unknown content", () => {
  ukemi.on("other", "anything", ({ event }) => {
    expectTypeOf(event["whatever"]).toEqualTypeOf<unknown>();
  });
  // @ts-expect-error there is no such source
  const wrong = () => ukemi.on("nobody", "anything", () => {});
  expectTypeOf(wrong).toBeFunction();
});

test("a task has the payload that it was declared with", () => {
  ukemi.task<{ to: string }>("mail", ({ payload }) => {
    expectTypeOf(payload.to).toEqualTypeOf<string>();
  });
});
