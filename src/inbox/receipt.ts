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
  /** False where the log has said as much already. */
  isNews?: boolean;
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

/** How each refusal is counted, and what the operator should do about it. */
export const REFUSALS: Readonly<
  Record<RefusalReason, { readonly result: ReceiptResult; readonly remedy: string }>
> = {
  signature_missing: {
    result: "rejected_signature",
    remedy: "Somebody else is probing the endpoint; or a proxy strips the header.",
  },
  signature_malformed: {
    result: "rejected_signature",
    remedy: "Somebody else is probing the endpoint; or a proxy joins or rewrites headers.",
  },
  wrong_secret: {
    result: "rejected_signature",
    remedy:
      "Compare the configured secrets' fingerprints (`ukemi doctor`) with the endpoint's secret. If they are right, it is a forgery.",
  },
  wrong_signature: {
    result: "rejected_signature",
    remedy:
      "The sender's own key did not sign this: a forgery, or something in between changed it. Check the database's clock where the certificate is said not to be valid.",
  },
  wrong_sender: {
    result: "rejected_signature",
    remedy:
      "It names an account or a topic that is not configured: add it (`topics` of sns) if it is yours; otherwise it is somebody else's.",
  },
  body_altered: {
    result: "rejected_signature",
    remedy:
      "Something between the sender and Ukemi parses and rewrites the body: pass it through byte for byte.",
  },
  stale: {
    result: "rejected_stale",
    remedy:
      "An old request was sent again, or something in between holds requests back; check the database's clock.",
  },
  future: { result: "rejected_stale", remedy: "Check the database's clock: it is behind." },
  content_encoding: { result: "rejected_payload", remedy: "Turn off compression of requests in the proxy." },
  body_read_before: {
    result: "error",
    remedy:
      "Mount the receiver before body parsers such as express.json(): every event is refused until then.",
  },
  invalid_payload: {
    result: "rejected_payload",
    remedy: "The sender signed something that is no event: look at the body in `ukemi.rejections`.",
  },
  store_refused: {
    result: "error",
    remedy: "The database refuses this one event: mend the cause; the sender tries again for days.",
  },
  source_failed: {
    result: "error",
    remedy: "A source of your own threw: mend it; nothing is accepted from it until then.",
  },
};

/** Notes what the event is, once that is known. */
export function noteIdentity(receipt: Receipt, identity: Identity): void {
  receipt.eventId = identity.eventId;
  receipt.eventType = identity.type;
  if (identity.tenant !== null) receipt.tenant = identity.tenant;
}
