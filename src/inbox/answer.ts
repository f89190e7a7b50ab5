// The answer to a delivery: an empty 204 with ids in headers, or a problem document (RFC 9457) that gives nothing away.
import { catalogue, type ErrorCode } from "../errors.ts";

/** An HTTP answer, for whichever server face has to give it. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The name of an error; docs/reference/errors.md says what it means. */
const TYPE_BASE = "urn:ukemi:error:";

/** Stored, or stored before: the sender may forget the event. */
export function acknowledge(
  requestId: string,
  eventId: string,
  messageId: string,
  duplicate: boolean,
): Answer {
  return {
    status: 204,
    headers: {
      "x-request-id": requestId,
      "x-event-id": encodeURI(eventId),
      "x-message-id": messageId,
      ...(duplicate ? { "x-duplicate": "true" } : {}),
    },
    body: "",
  };
}

/** When a sender should try again that found the store away or too busy. */
const RETRY_AFTER_SECONDS = "5";

/** A problem document. `detail` is for the caller's eyes; leave it out where the caller must learn nothing. */
export function problem(
  code: ErrorCode,
  requestId: string,
  extra: { detail?: string; headers?: Readonly<Record<string, string>> } = {},
): Answer {
  const entry: { status?: number; title: string; remedy: string } = catalogue[code];
  const status = entry.status ?? 500;
  const body = JSON.stringify({
    type: TYPE_BASE + code,
    title: entry.title,
    status,
    detail: extra.detail ?? entry.remedy,
    instance: `urn:request:${requestId}`,
    code,
    request_id: requestId,
  });
  return {
    status,
    headers: {
      "content-type": "application/problem+json",
      "x-request-id": requestId,
      ...(status === 503 ? { "retry-after": RETRY_AFTER_SECONDS } : {}),
      ...extra.headers,
    },
    body,
  };
}
