// What of a request's headers is kept, and what is read from them.
import type { HeaderMap } from "../sources/source.ts";

/** Credentials are not evidence: they never reach the store. */
const CREDENTIALS = /^(?:authorization|proxy-authorization|cookie)$|token|secret|api-?key|password/;

/** JSON text of the headers as they are kept with an event or a rejection. */
export function keptHeaders(headers: HeaderMap): string {
  const kept: Record<string, unknown> = {};
  for (const name in headers) {
    if (headers[name] !== undefined) kept[name] = CREDENTIALS.test(name) ? "[redacted]" : headers[name];
  }
  return JSON.stringify(kept);
}

/** One header as text; undefined where it is missing or came more than once in a form that cannot be joined. */
export function headerText(headers: HeaderMap, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : undefined;
}

/** The caller's request id where it is harmless, else a new one. */
export function requestIdOf(headers: HeaderMap): string {
  const given = headerText(headers, "x-request-id");
  return given !== undefined && /^[\w.:-]{1,64}$/.test(given) ? given : crypto.randomUUID();
}

/** A W3C trace parent, if it is well formed. */
export function traceparentOf(headers: HeaderMap): string | null {
  const given = headerText(headers, "traceparent");
  return given !== undefined && /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(given) ? given : null;
}
