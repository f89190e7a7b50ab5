// The public surface, in the order a reader meets it.
export { createUkemi } from "./ukemi.ts";
export type { Ukemi, UkemiOptions } from "./ukemi.ts";
export type { Settings } from "./options.ts";
export type { FetchReceiverOptions } from "./inbox/fetch.ts";
export type { NodeReceiver, NodeReceiverOptions } from "./inbox/node.ts";
export type { Answer } from "./inbox/answer.ts";
export type { Delivery, ReadBody } from "./inbox/delivery.ts";
export type { Receipt, ReceiptResult } from "./inbox/receipt.ts";

export { stripe } from "./sources/stripe.ts";
export type { StripeOptions } from "./sources/stripe.ts";
export { standardWebhooks } from "./sources/standard-webhooks.ts";
export type { StandardWebhooksOptions } from "./sources/standard-webhooks.ts";
export { hmac } from "./sources/hmac.ts";
export type { HmacOptions } from "./sources/hmac.ts";
export type {
  Identity,
  Ref,
  Refusal,
  RefusalReason,
  SignedRequest,
  Source,
  Verified,
} from "./sources/source.ts";

export { startServer } from "./server/server.ts";
export type { RunningServer } from "./server/server.ts";

export { UkemiError } from "./errors.ts";
export type { ErrorCode } from "./errors.ts";
export { VERSION } from "./version.ts";
