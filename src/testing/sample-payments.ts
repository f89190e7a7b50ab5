// Sample objects around one payment: payment intent, charge, refund.
import { stripeId } from "./sale.ts";
import type { Sale } from "./sale.ts";

const declined = {
  code: "card_declined",
  decline_code: "insufficient_funds",
  doc_url: "https://stripe.com/docs/error-codes/card-declined",
  message: "Your card has insufficient funds.",
  type: "card_error",
};

/** A payment intent that is paid, or whose card was declined (it may still succeed later). */
export function samplePaymentIntent(sale: Sale, status: "succeeded" | "requires_payment_method"): object {
  const { ids, amount, created, livemode, metadata } = sale;
  const paid = status === "succeeded";
  return {
    id: ids.paymentIntent,
    object: "payment_intent",
    amount,
    amount_capturable: 0,
    amount_details: { tip: {} },
    amount_received: paid ? amount : 0,
    application: null,
    application_fee_amount: null,
    automatic_payment_methods: { allow_redirects: "always", enabled: true },
    canceled_at: null,
    cancellation_reason: null,
    capture_method: "automatic_async",
    client_secret: stripeId(`${ids.paymentIntent}_secret`, 25),
    confirmation_method: "automatic",
    created: created - 30,
    currency: "jpy",
    customer: ids.customer,
    description: "親子料理教室 参加費",
    last_payment_error: paid ? null : { ...declined, payment_method: { id: ids.paymentMethod } },
    latest_charge: ids.charge,
    livemode,
    metadata,
    next_action: null,
    on_behalf_of: null,
    payment_method: paid ? ids.paymentMethod : null,
    payment_method_options: { card: { installments: null, request_three_d_secure: "automatic" } },
    payment_method_types: ["card", "konbini"],
    processing: null,
    receipt_email: null,
    review: null,
    setup_future_usage: null,
    shipping: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    status,
    transfer_data: null,
    transfer_group: null,
  };
}

/** A captured card charge, or the same fully refunded. */
export function sampleCharge(sale: Sale, { refunded }: { refunded: boolean }): object {
  const { ids, amount, created, livemode, metadata } = sale;
  return {
    id: ids.charge,
    object: "charge",
    amount,
    amount_captured: amount,
    amount_refunded: refunded ? amount : 0,
    application: null,
    application_fee: null,
    application_fee_amount: null,
    balance_transaction: stripeId("txn"),
    billing_details: {
      address: { city: null, country: "JP", line1: null, line2: null, postal_code: null, state: null },
      email: "aoi@example.com",
      name: "佐藤 葵",
      phone: null,
      tax_id: null,
    },
    calculated_statement_descriptor: "UKEMI SAMPLE",
    captured: true,
    created: created - 20,
    currency: "jpy",
    customer: ids.customer,
    description: "親子料理教室 参加費",
    disputed: false,
    failure_code: null,
    failure_message: null,
    fraud_details: {},
    livemode,
    metadata,
    on_behalf_of: null,
    outcome: {
      network_status: "approved_by_network",
      reason: null,
      risk_level: "normal",
      seller_message: "Payment complete.",
      type: "authorized",
    },
    paid: true,
    payment_intent: ids.paymentIntent,
    payment_method: ids.paymentMethod,
    payment_method_details: { card: sampleCard(), type: "card" },
    receipt_email: null,
    receipt_number: null,
    refunded,
    review: null,
    shipping: null,
    source_transfer: null,
    statement_descriptor: null,
    status: "succeeded",
    transfer_data: null,
    transfer_group: null,
  };
}

/** A full refund of the charge, accepted by the bank. */
export function sampleRefund({ ids, amount, created, metadata }: Sale): object {
  return {
    id: ids.refund,
    object: "refund",
    amount,
    balance_transaction: stripeId("txn"),
    charge: ids.charge,
    created,
    currency: "jpy",
    customer: ids.customer,
    description: null,
    destination_details: {
      card: { reference_status: "pending", reference_type: "acquirer_reference_number", type: "refund" },
      type: "card",
    },
    failure_balance_transaction: null,
    failure_reason: null,
    instructions_email: null,
    metadata,
    next_action: null,
    payment_intent: ids.paymentIntent,
    payment_method: ids.paymentMethod,
    pending_reason: null,
    reason: "requested_by_customer",
    receipt_number: null,
    source_transfer_reversal: null,
    status: "succeeded",
    transfer_reversal: null,
  };
}

function sampleCard(): object {
  return {
    brand: "visa",
    checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: "pass" },
    country: "JP",
    exp_month: 11,
    exp_year: 2031,
    fingerprint: stripeId("", 16).slice(1),
    funding: "credit",
    installments: null,
    last4: "4242",
    mandate: null,
    network: "visa",
    three_d_secure: null,
    wallet: null,
  };
}
