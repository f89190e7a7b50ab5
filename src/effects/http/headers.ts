// The headers of a call: those that the user may set.
import { UkemiError } from "../../errors.ts";

/** They belong to the connection, or are made from the rest of the request. */
const OURS = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
/** What HTTP lets pass in a value. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Servers take no more than about this. */
const LENGTH_MAX = 8 * 1024;

/** Whether this is the name of a header that does not belong to the connection. */
export function isHeaderName(name: unknown): name is string {
  return typeof name === "string" && NAME.test(name) && !OURS.has(name.toLowerCase());
}

/** Checks headers, and gives them lower-case names. No message quotes a value: it may be secret. */
export function readHeaders(given: unknown = {}, keyHeader: string): Record<string, string> {
  if (typeof given !== "object" || given === null || Symbol.iterator in given) {
    throw new UkemiError("invalid_option", 'headers must be an object such as { "x-tenant": "acme" }.');
  }
  const headers = new Map<string, string>();
  for (const [name, value] of Object.entries(given) as [string, unknown][]) {
    const lower = name.toLowerCase();
    const fault = faultOf(lower, value, keyHeader) ?? (headers.has(lower) ? "is there twice" : undefined);
    if (fault !== undefined) {
      throw new UkemiError("invalid_option", `headers: ${JSON.stringify(name.slice(0, 100))} ${fault}.`);
    }
    headers.set(lower, String(value));
  }
  const length = [...headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
  if (length > LENGTH_MAX) {
    throw new UkemiError(
      "invalid_option",
      `headers must not be longer than ${LENGTH_MAX} characters in all: send the rest in the body.`,
    );
  }
  return Object.fromEntries(headers);
}

function faultOf(name: string, value: unknown, keyHeader: string): string | undefined {
  if (OURS.has(name)) return "is set by Ukemi: leave it out";
  if (!isHeaderName(name)) return "is no valid name of a header";
  if (name === keyHeader) return "carries the key that Ukemi gives to every try: leave it out";
  if (typeof value !== "string") return "must be a text";
  if (!VALUE.test(value)) return "must not hold line breaks or characters beyond Latin-1: encode them";
  return undefined;
}
