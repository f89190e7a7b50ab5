// Receiving one delivery: admit → read → verify → identify → store → acknowledge. A 2xx is given only after the commit.
import { steadyMs } from "../clock.ts";
import { UkemiError, type ErrorCode } from "../errors.ts";
import type { AddressList } from "../sources/addresses.ts";
import type { Refusal, Source } from "../sources/source.ts";
import type { NewEvent, StoredEvent } from "../storage/events.ts";
import { describeFault } from "../storage/faults.ts";
import { acknowledge, problem, type Answer } from "./answer.ts";
import type { ByteBudget } from "./budget.ts";
import { CallerGone, type Delivery } from "./delivery.ts";
import { newEvent } from "./event.ts";
import { askSource, isStorable, isVerified } from "./identity.ts";
import { headerText, keptHeaders, requestIdOf } from "./headers.ts";
import type { Block, RefusalLimiter } from "./limiter.ts";
import type { Quarantine } from "./quarantine.ts";
import { noteIdentity, REFUSALS, type Receipt, type ReceiptResult } from "./receipt.ts";

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
  readonly budget: ByteBudget;
  readonly bodyBytesMax: number;
  readonly onReceipt: (receipt: Receipt) => void;
}

/** Answers a delivery, whatever happens. Rejects only with CallerGone. */
export type Receive = (delivery: Delivery) => Promise<Answer>;

/** One delivery on its way through. */
interface Visit {
  readonly inbox: ReceiveOptions;
  readonly delivery: Delivery;
  readonly receipt: Receipt;
  /** Counts bytes of the body against the budget, until the visit is over. */
  readonly admitBytes: (bytes: number) => boolean;
}

/** The largest body that is still read from an address that caused too many refusals. */
const BLOCKED_BYTES_MAX = 64 * 1024;

/** How much of an unknown source's name the log shows. */
const SHOWN_NAME_MAX = 80;

/** Makes the function that receives deliveries. */
export function createReceive(inbox: ReceiveOptions): Receive {
  return async function receive(delivery) {
    const startedAt = steadyMs();
    const receipt = newReceipt(delivery);
    let bytes = 0;
    const admitBytes = (more: number) => {
      const admitted = inbox.budget.take(more);
      if (admitted) bytes += more;
      return admitted;
    };
    const visit: Visit = { inbox, delivery, receipt, admitBytes };
    let answer: Answer;
    try {
      answer = await takeIn(visit);
    } catch (error) {
      answer = failed(visit, error);
    } finally {
      inbox.budget.release(bytes);
    }
    receipt.status = answer.status;
    receipt.durationMs = steadyMs() - startedAt;
    inbox.onReceipt(receipt);
    return answer;
  };
}

function newReceipt({ headers, source, address }: Delivery): Receipt {
  const receipt: Receipt = {
    requestId: requestIdOf(headers),
    source,
    result: "error",
    status: 0,
    durationMs: 0,
  };
  if (address !== undefined) receipt.address = address;
  return receipt;
}

async function takeIn(visit: Visit): Promise<Answer> {
  const { inbox, delivery, receipt } = visit;
  const open = inbox.sources.get(delivery.source);
  if (!open) {
    receipt.source = "unknown"; // the name is the caller's choice: it must not become a label
    receipt.diagnosis = `there is no source named ${JSON.stringify(delivery.source.slice(0, SHOWN_NAME_MAX))}`;
    return turnAway(visit, "unknown_source", "rejected_route");
  }
  const turnedAway = admit(visit, open);
  if (turnedAway) return turnedAway;

  const block = delivery.address === undefined ? undefined : inbox.limiter.blocked(delivery.address);
  const bytesMax = block ? Math.min(BLOCKED_BYTES_MAX, inbox.bodyBytesMax) : inbox.bodyBytesMax;
  const body = await delivery.readBody({ bytesMax, admit: visit.admitBytes });
  if (body === "too large") {
    return block ? tooMany(visit, block) : turnAway(visit, "payload_too_large", "rejected_size");
  }
  if (body === "no room") throw new UkemiError("overloaded");
  if (body === "read before") return refuse(visit, READ_BEFORE);
  receipt.bodyBytes = body.length;
  const readAt = steadyMs();

  const request = { headers: delivery.headers, body };
  const { source } = open;
  // only where a source asks for it: what all others cost must not have one more step
  if (source.prepare && !block) await askSender(visit, source.prepare(request, inbox.now()));
  const verified = askSource(() => source.verify(request, inbox.now(), { diagnose: !block }), isVerified);
  if (verified.refused) return block ? tooMany(visit, block) : refuse(visit, verified, body);
  if (delivery.address !== undefined) inbox.limiter.verified(delivery.address);
  const identity = askSource(() => source.identify(request), isStorable);
  if (identity.refused) return refuse(visit, identity, body);

  noteIdentity(receipt, identity);
  const { secretFingerprint } = verified;
  const stored = await store(
    visit,
    newEvent({ delivery, body, identity, secretFingerprint, receipt, nowMs: inbox.now() }),
  );
  receipt.commitMs = steadyMs() - readAt;
  receipt.messageId = stored.id;
  if (source.conclude) await askSender(visit, source.conclude(request, identity));
  receipt.result = stored.duplicate ? "duplicate" : identity.skip === undefined ? "accepted" : "skipped";
  return acknowledge(receipt.requestId, identity.eventId, stored.id, stored.duplicate);
}

/**
 * An address that caused too many refusals. It may be a proxy that an honest sender shares with a forger: a signature is
 * still checked, for bodies of an event's usual size, but nothing is diagnosed, kept or, after the first time, logged.
 */
function tooMany({ receipt }: Visit, block: Block): Answer {
  receipt.result = "rejected_abuse";
  receipt.reason = "too_many_refused";
  receipt.isNews = block.isNews;
  return problem("too_many_refused", receipt.requestId, {
    headers: { "retry-after": String(block.waitSeconds) },
  });
}

/** What can be refused before the body is read, cheapest first. */
function admit(visit: Visit, { addresses }: OpenSource): Answer | undefined {
  const { delivery } = visit;
  if (delivery.method !== "POST") {
    return turnAway(visit, "method_not_allowed", "rejected_route", { allow: "POST" });
  }
  if (addresses && !addresses.allows(delivery.address ?? "")) {
    return turnAway(visit, "address_not_allowed", "rejected_address");
  }
  if (Number(headerText(delivery.headers, "content-length") ?? 0) > visit.inbox.bodyBytesMax) {
    return turnAway(visit, "payload_too_large", "rejected_size");
  }
  const encoding = headerText(delivery.headers, "content-encoding");
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") return refuse(visit, COMPRESSED);
  return undefined;
}

const COMPRESSED: Refusal = {
  refused: "content_encoding",
  diagnosis: "the body is compressed, which no sender we know does",
};

/** A fault of the application around us: every event is refused until it is mended. */
const READ_BEFORE: Refusal = {
  refused: "body_read_before",
  diagnosis:
    "the body was read before Ukemi got it, and a signature covers its raw bytes: mount the receiver before body parsers such as express.json()",
};

/** A request that does not belong here, whoever sent it. */
function turnAway(
  { inbox, delivery, receipt }: Visit,
  code: ErrorCode,
  result: ReceiptResult,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  receipt.result = result;
  receipt.reason = code;
  if (delivery.address !== undefined) inbox.limiter.refused(delivery.address);
  return problem(code, receipt.requestId, { headers });
}

/** A request that is not what it claims to be: the caller learns nothing but 400, the operator everything. */
function refuse(visit: Visit, refusal: Refusal, body: Buffer = Buffer.alloc(0)): Answer {
  const { inbox, delivery, receipt } = visit;
  receipt.result = REFUSALS[refusal.refused].result;
  if (delivery.address !== undefined) inbox.limiter.refused(delivery.address);
  keepAside(visit, refusal, body);
  return problem("invalid_webhook", receipt.requestId);
}

function keepAside({ inbox, delivery, receipt }: Visit, refusal: Refusal, body: Buffer): void {
  receipt.reason = refusal.refused;
  receipt.diagnosis = refusal.diagnosis;
  inbox.quarantine.keep({
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
async function store(visit: Visit, event: NewEvent): Promise<StoredEvent> {
  try {
    return await visit.inbox.store(event);
  } catch (error) {
    if (error instanceof UkemiError) throw error;
    const diagnosis = `the database refused the event: ${describeFault(error)}`;
    keepAside(visit, { refused: "store_refused", diagnosis }, event.body);
    throw new UkemiError("store_unavailable", undefined, { cause: error });
  }
}

/** What the sender's own service is needed for. Without it there is no 2xx, so that the sender tries again. */
async function askSender({ receipt }: Visit, asked: Promise<void>): Promise<void> {
  try {
    await asked;
  } catch (error) {
    receipt.diagnosis = describeFault(error);
    throw new UkemiError("sender_unreachable", undefined, { cause: error });
  }
}

function failed({ receipt }: Visit, error: unknown): Answer {
  if (error instanceof CallerGone) throw error;
  const code = error instanceof UkemiError ? error.code : "internal";
  receipt.result = "error";
  receipt.reason ??= code;
  receipt.diagnosis ??= describeFault(error);
  return problem(code, receipt.requestId);
}
