// Sample objects around a purchase and a monthly plan: checkout session, subscription, invoice.
import { stripeId } from "./sale.ts";
import type { Sale } from "./sale.ts";

const monthSeconds = 30 * 86_400;
const plan = { price: "price_ukemiSampleMonthly01", product: "prod_ukemiSample01" };

/** A checkout session whose card payment went through. */
export function sampleCheckoutSession({ ids, amount, created, livemode, metadata }: Sale): object {
  return {
    id: ids.checkoutSession,
    object: "checkout.session",
    after_expiration: null,
    allow_promotion_codes: null,
    amount_subtotal: amount,
    amount_total: amount,
    automatic_tax: { enabled: false, liability: null, provider: null, status: null },
    billing_address_collection: null,
    cancel_url: "https://tickets.example.com/cart",
    client_reference_id: null,
    client_secret: null,
    consent: null,
    created: created - 120,
    currency: "jpy",
    custom_fields: [],
    customer: ids.customer,
    customer_creation: "always",
    customer_details: {
      address: { city: null, country: "JP", line1: null, line2: null, postal_code: null, state: null },
      email: "aoi@example.com",
      name: "佐藤 葵",
      phone: null,
      tax_exempt: "none",
      tax_ids: [],
    },
    customer_email: null,
    discounts: [],
    expires_at: created - 120 + 86_400,
    invoice: null,
    livemode,
    locale: "ja",
    metadata,
    mode: "payment",
    payment_intent: ids.paymentIntent,
    payment_link: null,
    payment_method_collection: "if_required",
    payment_method_types: ["card", "konbini"],
    payment_status: "paid",
    phone_number_collection: { enabled: false },
    setup_intent: null,
    shipping_cost: null,
    shipping_options: [],
    status: "complete",
    submit_type: null,
    subscription: null,
    success_url: "https://tickets.example.com/thanks",
    total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
    ui_mode: "hosted_page",
    url: null,
  };
}

/** A monthly subscription that has just become active. */
export function sampleSubscription({ ids, amount, created, livemode, metadata }: Sale): object {
  const period = { current_period_start: created - 5, current_period_end: created - 5 + monthSeconds };
  return {
    id: ids.subscription,
    object: "subscription",
    automatic_tax: { disabled_reason: null, enabled: false, liability: null },
    billing_cycle_anchor: created - 5,
    cancel_at: null,
    cancel_at_period_end: false,
    canceled_at: null,
    cancellation_details: { comment: null, feedback: null, reason: null },
    collection_method: "charge_automatically",
    created: created - 5,
    currency: "jpy",
    customer: ids.customer,
    days_until_due: null,
    default_payment_method: ids.paymentMethod,
    description: null,
    discounts: [],
    ended_at: null,
    items: {
      object: "list",
      data: [
        {
          id: stripeId("si", 14),
          object: "subscription_item",
          created: created - 5,
          ...period,
          metadata: {},
          price: {
            id: plan.price,
            object: "price",
            active: true,
            currency: "jpy",
            product: plan.product,
            recurring: { interval: "month", interval_count: 1, usage_type: "licensed" },
            type: "recurring",
            unit_amount: amount,
            unit_amount_decimal: String(amount),
          },
          quantity: 1,
          subscription: ids.subscription,
        },
      ],
      has_more: false,
      url: `/v1/subscription_items?subscription=${ids.subscription}`,
    },
    latest_invoice: ids.invoice,
    livemode,
    metadata,
    pause_collection: null,
    pending_update: null,
    schedule: null,
    start_date: created - 5,
    status: "active",
    trial_end: null,
    trial_start: null,
  };
}

/** The plan's monthly invoice: paid, or still open after a failed try. */
export function sampleInvoice(sale: Sale, status: "paid" | "open"): object {
  const { ids, amount, created, livemode, metadata } = sale;
  const paid = status === "paid";
  return {
    id: ids.invoice,
    object: "invoice",
    account_country: "JP",
    account_name: "うけみ見本店",
    amount_due: amount,
    amount_paid: paid ? amount : 0,
    amount_remaining: paid ? 0 : amount,
    attempt_count: 1,
    attempted: true,
    auto_advance: !paid,
    billing_reason: "subscription_cycle",
    collection_method: "charge_automatically",
    created: created - 3600,
    currency: "jpy",
    customer: ids.customer,
    customer_email: "aoi@example.com",
    customer_name: "佐藤 葵",
    description: null,
    due_date: null,
    lines: { object: "list", data: [sampleLine(sale)], has_more: false, total_count: 1 },
    livemode,
    metadata,
    next_payment_attempt: paid ? null : created + 3 * 86_400,
    number: "UKEMI-0001",
    parent: {
      quote_details: null,
      subscription_details: { metadata: {}, subscription: ids.subscription },
      type: "subscription_details",
    },
    period_end: created - 3600,
    period_start: created - 3600 - monthSeconds,
    status,
    status_transitions: {
      finalized_at: created - 60,
      marked_uncollectible_at: null,
      paid_at: paid ? created : null,
      voided_at: null,
    },
    subtotal: amount,
    total: amount,
    total_taxes: [],
  };
}

function sampleLine({ ids, amount, created, livemode }: Sale): object {
  return {
    id: stripeId("il"),
    object: "line_item",
    amount,
    currency: "jpy",
    description: `1 × 月額プラン (at ¥${amount} / month)`,
    invoice: ids.invoice,
    livemode,
    metadata: {},
    parent: {
      subscription_item_details: { proration: false, subscription: ids.subscription },
      type: "subscription_item_details",
    },
    period: { start: created - 3600, end: created - 3600 + monthSeconds },
    pricing: { price_details: plan, type: "price_details", unit_amount_decimal: String(amount) },
    quantity: 1,
    subtotal: amount,
  };
}
