// The event to store, put together from a delivery that was verified and identified.
import { hash } from "node:crypto";
import type { Identity } from "../sources/source.ts";
import type { NewEvent } from "../storage/events.ts";
import { uuidv7 } from "../storage/ids.ts";
import type { Delivery } from "./delivery.ts";
import { keptHeaders, traceparentOf } from "./headers.ts";
import type { Receipt } from "./receipt.ts";

interface EventParts {
  readonly delivery: Delivery;
  readonly body: Buffer;
  readonly identity: Identity;
  readonly secretFingerprint: string;
  readonly receipt: Receipt;
  /** The database's time in milliseconds. */
  readonly nowMs: number;
}

/** Gives the event its id: made here, before the first try, so that an unknown commit can be told from a duplicate. */
export function newEvent({
  delivery,
  body,
  identity,
  secretFingerprint,
  receipt,
  nowMs,
}: EventParts): NewEvent {
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
    requestId: receipt.requestId,
    traceparent: traceparentOf(delivery.headers),
    body,
    // as text first: a Buffer made by node:crypto has memory of its own, a third of what the hash costs
    bodySha256: Buffer.from(hash("sha256", body, "binary"), "latin1"),
    headers: keptHeaders(delivery.headers),
    refs: identity.refs,
    skip: identity.skip ?? null,
  };
}
