// Receiving one delivery: admit → read → verify → identify → store → acknowledge. A 2xx is given only after the commit.
import { createHash } from "node:crypto";
import { steadyMs } from "../clock.ts";
import { UkemiError, type ErrorCode } from "../errors.ts";
import type { AddressList } from "../sources/addresses.ts";
import type { HeaderMap, Identity, Refusal, RefusalReason, Source } from "../sources/source.ts";
import type { NewEvent, StoredEvent } from "../storage/events.ts";
import { describeFault } from "../storage/faults.ts";
import { uuidv7 } from "../storage/ids.ts";
import { acknowledge, problem, type Answer } from "./answer.ts";
import { headerText, keptHeaders, requestIdOf, traceparentOf } from "./headers.ts";
import type { RefusalLimiter } from "./limiter.ts";
import type { Quarantine } from "./quarantine.ts";

/** One delivery, from whichever server face it came. */
export interface Delivery {
  /** The name of the source in the URL. */
  readonly source: string;
  readonly method: string;
  readonly headers: HeaderMap;
  /** The sender's address; undefined where the face does not know it. */
  readonly address: string | undefined;
  /** Reads the body. */
  readBody(bytesMax: number): Promise<ReadBody>;
}

/**
 * The body, or why there is none: "too large" as soon as the limit is passed, without reading on; "read before" where
 * something in the application around us has read it already.
 */
export type ReadBody = Buffer | "too large" | "read before";

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

/** A source with its address list made ready. */
export interface OpenSource {
  readonly source: Source;
  readonly addresses: AddressList | undefined;
}

export interface ReceiveOptions {
  readonly sources: ReadonlyMap<string, OpenSource>;
  readonly store: (event: NewEvent) => Promise<StoredEvent>;
  /** The database's time in milliseconds. */
  readonly now: () => number;
  readonly limiter: RefusalLimiter;
  readonly quarantine: Quarantine;
  readonly bodyBytesMax: number;
  readonly onReceipt: (receipt: Receipt) => void;
}

export type Receive = (delivery: Delivery) => Promise<Answer>;

/** Seconds after which a sender should try again when the store is away. */
const RETRY_AFTER_SECONDS = "5";

/** Makes the function that receives deliveries. It answers, whatever happens: it never throws, unless the body cannot be read. */
export function createReceive(options: ReceiveOptions): Receive {
  return async function receive(delivery) {
    const startedAt = steadyMs();
    const receipt: Receipt = {
      requestId: requestIdOf(delivery.headers),
      source: delivery.source,
      result: "error",
      status: 0,
      durationMs: 0,
      ...(delivery.address === undefined ? {} : { address: delivery.address }),
    };
    const answer = await takeIn(delivery, receipt, options).catch((error: unknown) => failed(error, receipt));
    receipt.status = answer.status;
    receipt.durationMs = steadyMs() - startedAt;
    options.onReceipt(receipt);
    return answer;
  };
}

async function takeIn(delivery: Delivery, receipt: Receipt, options: ReceiveOptions): Promise<Answer> {
  const open = options.sources.get(delivery.source);
  const turnedAway = admit(delivery, open, receipt, options);
  if (turnedAway || !open) return turnedAway!;

  const encoding = headerText(delivery.headers, "content-encoding");
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    const refusal: Refusal = {
      refused: "content_encoding",
      diagnosis: "the body is compressed; senders do not do that",
    };
    return refuse(delivery, Buffer.alloc(0), refusal, receipt, options);
  }
  const body = await delivery.readBody(options.bodyBytesMax);
  if (body === "too large") return turnAway("payload_too_large", "rejected_size", delivery, receipt, options);
  if (body === "read before") return refuse(delivery, Buffer.alloc(0), READ_BEFORE, receipt, options);
  receipt.bodyBytes = body.length;
  const readAt = steadyMs();

  const request = { headers: delivery.headers, body };
  const verified = open.source.verify(request, options.now());
  if (verified.refused) return refuse(delivery, body, verified, receipt, options);
  if (delivery.address !== undefined) options.limiter.verified(delivery.address);
  const identity = open.source.identify(request);
  if (identity.refused) return refuse(delivery, body, identity, receipt, options);

  noteIdentity(receipt, identity);
  const event = newEvent(
    delivery,
    body,
    identity,
    verified.secretFingerprint,
    receipt.requestId,
    options.now(),
  );
  const stored = await storeOrQuarantine(event, delivery, receipt, options);
  receipt.commitMs = steadyMs() - readAt;
  receipt.messageId = stored.id;
  receipt.result = stored.duplicate ? "duplicate" : identity.skip === undefined ? "accepted" : "skipped";
  return acknowledge(receipt.requestId, identity.eventId, stored.id, stored.duplicate);
}

/** A fault of the application around us: every event is refused until it is mended. */
const READ_BEFORE: Refusal = {
  refused: "body_read_before",
  diagnosis:
    "the body was read before Ukemi got it, and a signature covers its raw bytes: mount the receiver before body parsers such as express.json()",
};

/** What can be refused before the body is read, cheapest first. */
function admit(
  delivery: Delivery,
  open: OpenSource | undefined,
  receipt: Receipt,
  options: ReceiveOptions,
): Answer | undefined {
  if (!open) {
    receipt.source = "unknown"; // the name is the caller's choice: it must not become a label
    return turnAway("unknown_source", "rejected_route", delivery, receipt, options);
  }
  if (delivery.method !== "POST") {
    return turnAway("method_not_allowed", "rejected_route", delivery, receipt, options, { allow: "POST" });
  }
  if (open.addresses && !open.addresses.allows(delivery.address ?? "")) {
    return turnAway("address_not_allowed", "rejected_address", delivery, receipt, options);
  }
  const wait = delivery.address === undefined ? 0 : options.limiter.waitSeconds(delivery.address);
  if (wait > 0) {
    receipt.result = "rejected_abuse";
    receipt.reason = "too_many_refused";
    return problem("too_many_refused", receipt.requestId, { headers: { "retry-after": String(wait) } });
  }
  if (Number(headerText(delivery.headers, "content-length") ?? 0) > options.bodyBytesMax) {
    return turnAway("payload_too_large", "rejected_size", delivery, receipt, options);
  }
  return undefined;
}

function turnAway(
  code: ErrorCode,
  result: ReceiptResult,
  delivery: Delivery,
  receipt: Receipt,
  options: ReceiveOptions,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  receipt.result = result;
  receipt.reason = code;
  if (delivery.address !== undefined) options.limiter.refused(delivery.address);
  return problem(code, receipt.requestId, { headers });
}

/** A request that is not what it claims to be: the caller learns nothing but 400, the operator everything. */
function refuse(
  delivery: Delivery,
  body: Buffer,
  refusal: Refusal,
  receipt: Receipt,
  options: ReceiveOptions,
): Answer {
  receipt.result = RESULT_OF_REFUSAL[refusal.refused];
  receipt.reason = refusal.refused;
  receipt.diagnosis = refusal.diagnosis;
  if (delivery.address !== undefined) options.limiter.refused(delivery.address);
  quarantine(delivery, body, refusal, receipt, options);
  return problem("invalid_webhook", receipt.requestId);
}

const RESULT_OF_REFUSAL: Readonly<Record<RefusalReason, ReceiptResult>> = {
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

function quarantine(
  delivery: Delivery,
  body: Buffer,
  refusal: Refusal,
  receipt: Receipt,
  options: ReceiveOptions,
): void {
  options.quarantine.keep({
    source: delivery.source,
    reason: refusal.refused,
    diagnosis: refusal.diagnosis,
    address: delivery.address ?? null,
    requestId: receipt.requestId,
    headers: keptHeaders(delivery.headers),
    bodyBytes: body.length,
    bodySample: body,
  });
}

/** An honest event that the database itself refuses is kept aside with the reason, so that nothing is lost silently. */
async function storeOrQuarantine(
  event: NewEvent,
  delivery: Delivery,
  receipt: Receipt,
  options: ReceiveOptions,
): Promise<StoredEvent> {
  try {
    return await options.store(event);
  } catch (error) {
    if (error instanceof UkemiError) throw error;
    const diagnosis = `the database refused the event: ${describeFault(error)}`;
    receipt.diagnosis = diagnosis;
    quarantine(delivery, event.body, { refused: "store_refused", diagnosis }, receipt, options);
    throw new UkemiError("store_unavailable", undefined, { cause: error });
  }
}

function failed(error: unknown, receipt: Receipt): Answer {
  receipt.result = "error";
  if (!(error instanceof UkemiError)) throw error;
  receipt.reason = error.code;
  return problem(error.code, receipt.requestId, { headers: { "retry-after": RETRY_AFTER_SECONDS } });
}

function noteIdentity(receipt: Receipt, identity: Identity): void {
  receipt.eventId = identity.eventId;
  receipt.eventType = identity.type;
  if (identity.tenant !== null) receipt.tenant = identity.tenant;
}

function newEvent(
  delivery: Delivery,
  body: Buffer,
  identity: Identity,
  secretFingerprint: string,
  requestId: string,
  nowMs: number,
): NewEvent {
  return {
    id: uuidv7(nowMs),
    source: delivery.source,
    account: identity.account,
    livemode: identity.livemode,
    eventId: identity.eventId,
    type: identity.type,
    tenant: identity.tenant,
    occurredAt: identity.occurredAt,
    secretFingerprint,
    requestId,
    traceparent: traceparentOf(delivery.headers),
    body,
    bodySha256: createHash("sha256").update(body).digest(),
    headers: keptHeaders(delivery.headers),
    refs: identity.refs,
    skip: identity.skip ?? null,
  };
}
