// Reading a verified body: everything that leaves here is bounded and can be stored as text.
import { isUtf8 } from "node:buffer";
import { refuse } from "./signature.ts";
import type { Refusal } from "./source.ts";

/** A parsed JSON object of unknown content. */
export type JsonObject = Readonly<Record<string, unknown>>;

const identifierBytesMax = 255;
const lastStorableMs = Date.UTC(9999, 11, 31);

/** The body as a JSON object, or a refusal. The diagnosis never quotes the body, as `JSON.parse`'s own message does. */
export function readJsonObject(body: Buffer): { readonly object: JsonObject } | Refusal {
  if (!isUtf8(body)) return refuse("invalid_payload", "the body is not UTF-8");
  try {
    const value: unknown = JSON.parse(body.toString());
    if (isObject(value)) return { object: value };
    return refuse("invalid_payload", "the body is JSON, but not an object");
  } catch {
    return refuse("invalid_payload", "the body is not JSON");
  }
}

/** True for a JSON object; arrays and null are none. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** True for text fit to be an id, a type or an account: 1 to 255 bytes, no control characters, no lone surrogates. */
export function isIdentifier(value: unknown): value is string {
  return (
    typeof value === "string" &&
    value !== "" &&
    value.length <= identifierBytesMax &&
    // nearly every id is plain ASCII, and needs no second look
    (/^[ -~]+$/.test(value) || isProperText(value))
  );
}

function isProperText(value: string): boolean {
  return Buffer.byteLength(value) <= identifierBytesMax && !/[\p{Cc}\p{Cs}]/u.test(value);
}

/** Own properties along a dotted path such as `data.organiser.id`; what is inherited (`constructor`) is not content. */
export function valueAt(object: JsonObject, path: string): unknown {
  let value: unknown = object;
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as JsonObject)[key];
  }
  return value;
}

/** An identifier at a path. Whole numbers count while they are exact: beyond 2^53 two ids would become one. */
export function identifierAt(object: JsonObject, path: string): string | undefined {
  const value = valueAt(object, path);
  if (Number.isSafeInteger(value)) return String(value);
  return isIdentifier(value) ? value : undefined;
}

/** A date from seconds since 1970 or ISO 8601 text; null where it is neither, or beyond what the database prints. */
export function readDate(value: unknown): Date | null {
  const ms = typeof value === "number" ? value * 1000 : typeof value === "string" ? parseIso(value) : NaN;
  return ms >= 0 && ms <= lastStorableMs ? new Date(ms) : null;
}

function parseIso(text: string): number {
  const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;
  return iso.test(text) ? Date.parse(text) : NaN;
}
