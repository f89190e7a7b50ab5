// Sample Stripe events of our own writing: yen, invented people, new ids on every call.
import { randomUUID } from "node:crypto";
import { sampleIds, stripeId } from "./sale.ts";
import type { Sale, SampleIds } from "./sale.ts";
import { sampleCharge, samplePaymentIntent, sampleRefund } from "./sample-payments.ts";
import { sampleCheckoutSession, sampleInvoice, sampleSubscription } from "./sample-billing.ts";

/** What a sample is about; everything has a value of its own where it is not given. */
export interface SampleEventOptions {
  /** The event's id. */
  readonly id?: string;
  /** @default false */
  readonly livemode?: boolean;
  /** The connected account (Connect) whose event it is. */
  readonly account?: string;
  /**
   * Seconds since 1970.
   * @default now
   */
  readonly created?: number;
  /** The metadata of the event's object. */
  readonly metadata?: Readonly<Record<string, string>>;
  /**
   * Yen.
   * @default 4800
   */
  readonly amount?: number;
  /** Ids of the sale, so that several events belong together. */
  readonly ids?: Partial<SampleIds>;
}

interface Sample {
  readonly object: object;
  readonly previous?: object;
}

const samples: Readonly<Record<string, (sale: Sale) => Sample>> = {
  "payment_intent.succeeded": (sale) => ({ object: samplePaymentIntent(sale, "succeeded") }),
  "payment_intent.payment_failed": (sale) => ({
    object: samplePaymentIntent(sale, "requires_payment_method"),
  }),
  "charge.succeeded": (sale) => ({ object: sampleCharge(sale, { refunded: false }) }),
  "charge.refunded": (sale) => ({
    object: sampleCharge(sale, { refunded: true }),
    previous: { amount_refunded: 0, refunded: false },
  }),
  "checkout.session.completed": (sale) => ({ object: sampleCheckoutSession(sale) }),
  "invoice.paid": (sale) => ({ object: sampleInvoice(sale, "paid") }),
  "invoice.payment_failed": (sale) => ({ object: sampleInvoice(sale, "open") }),
  "customer.subscription.updated": (sale) => ({
    object: sampleSubscription(sale),
    previous: { default_payment_method: null, status: "incomplete" },
  }),
  "refund.created": (sale) => ({ object: sampleRefund(sale) }),
};

/** The event types that have a sample of their own; any other type gets a plain object. */
export const sampleEventTypes: readonly string[] = Object.freeze(Object.keys(samples));

/** A Stripe event's body as Stripe would send it: JSON, indented by two spaces. Sign exactly this text. */
export function sampleEvent(type: string, options: SampleEventOptions = {}): string {
  const created = options.created ?? Math.floor(Date.now() / 1000);
  const livemode = options.livemode ?? false;
  const sale: Sale = {
    ids: sampleIds(options.ids),
    amount: options.amount ?? 4800,
    created,
    livemode,
    metadata: options.metadata ?? {},
  };
  const { object, previous } = Object.hasOwn(samples, type) ? samples[type]!(sale) : plain(type, sale);
  const event = {
    id: options.id ?? stripeId("evt"),
    object: "event",
    ...(options.account !== undefined && { account: options.account }),
    api_version: "2026-10-28.endive",
    created,
    data: { object, ...(previous && { previous_attributes: previous }) },
    livemode,
    pending_webhooks: 1,
    request: { id: stripeId("req", 14), idempotency_key: randomUUID() },
    type,
  };
  return JSON.stringify(event, null, 2);
}

/** `customer.tax_id.created` is about a `customer.tax_id`. */
function plain(type: string, { ids, amount, created, livemode, metadata }: Sale): Sample {
  const kind = type.split(".").slice(0, -1).join(".") || "object";
  return {
    object: {
      id: stripeId("obj"),
      object: kind,
      amount,
      created,
      currency: "jpy",
      customer: ids.customer,
      description: "見本のイベント",
      livemode,
      metadata,
    },
  };
}
