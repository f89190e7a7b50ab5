// What became of a delivery: gathered on the way through, then one log line and one count.
import type { ErrorCode } from "../errors.ts";
import type { Identity, RefusalReason } from "../sources/source.ts";

/** What became of a delivery: one wide log line, and the metrics. */
export interface Receipt {
  requestId: string;
  source: string;
  result: ReceiptResult;
  status: number;
  durationMs: number;
  bodyBytes?: number;
  /** From the last byte of the body to the durable commit. */
  commitMs?: number;
  reason?: RefusalReason | ErrorCode;
  diagnosis?: string;
  address?: string;
  eventId?: string;
  eventType?: string;
  messageId?: string;
  tenant?: string;
}

export type ReceiptResult =
  | "accepted"
  | "duplicate"
  | "skipped"
  | "rejected_signature"
  | "rejected_stale"
  | "rejected_payload"
  | "rejected_size"
  | "rejected_address"
  | "rejected_abuse"
  | "rejected_route"
  | "error";

/** How a refusal is counted. */
export const RESULT_OF_REFUSAL: Readonly<Record<RefusalReason, ReceiptResult>> = {
  signature_missing: "rejected_signature",
  signature_malformed: "rejected_signature",
  wrong_secret: "rejected_signature",
  body_altered: "rejected_signature",
  stale: "rejected_stale",
  future: "rejected_stale",
  content_encoding: "rejected_payload",
  body_read_before: "error",
  invalid_payload: "rejected_payload",
  store_refused: "error",
};

/** Notes what the event is, once that is known. */
export function noteIdentity(receipt: Receipt, identity: Identity): void {
  receipt.eventId = identity.eventId;
  receipt.eventType = identity.type;
  if (identity.tenant !== null) receipt.tenant = identity.tenant;
}
