// What a user asks to be called, checked before it is written down: what is wrong then would be wrong on every try.
import { UkemiError } from "../../errors.ts";
import { readUrl } from "./destination.ts";
import { isHeaderName, readHeaders } from "./headers.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;
const BODY_BYTES_MAX = 1024 * 1024;

/** What can be asked of a peer. */
export type HttpMethod = (typeof METHODS)[number];

/** What is given to `effects.http`. */
export interface HttpRequest {
  readonly url: string;
  /** @default "POST" */
  readonly method?: HttpMethod;
  /** Stored with the effect. Those of the connection and the idempotency key are set by Ukemi. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A text as it is, or an object that is sent as JSON; at most 1 MiB. */
  readonly body?: string | object;
  /**
   * Whether the peer does it once however often it comes, by its nature or by the idempotency key.
   *
   * @default true for GET, HEAD, PUT and DELETE, false for POST and PATCH
   */
  readonly idempotent?: boolean;
  /** The header in which the peer wants the key. @default "idempotency-key" */
  readonly idempotencyHeader?: string;
}

/** A request that can be sent as it is. */
export interface HttpIntent {
  readonly url: string;
  readonly method: HttpMethod;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly idempotent: boolean;
  readonly idempotencyHeader: string;
}

/** Checks and completes it; throws invalid_option with what to do. */
export function readHttpIntent(given: HttpRequest): HttpIntent {
  if (typeof given !== "object" || given === null) {
    throw new UkemiError("invalid_option", "Give an object with a url, and what is to be sent there.");
  }
  const { idempotencyHeader = "idempotency-key", method = "POST" } = given;
  if (!METHODS.includes(method)) {
    throw new UkemiError("invalid_option", `method must be one of ${METHODS.join(", ")}.`);
  }
  if (!isHeaderName(idempotencyHeader)) {
    throw new UkemiError("invalid_option", 'idempotencyHeader must be a header such as "idempotency-key".');
  }
  const keyHeader = idempotencyHeader.toLowerCase();
  const { idempotent = method !== "POST" && method !== "PATCH" } = given;
  if (typeof idempotent !== "boolean")
    throw new UkemiError("invalid_option", "idempotent must be true or false.");
  const url = readUrl(given.url).href;
  const headers = readHeaders(given.headers, keyHeader);
  const body = readBody(given.body, method);
  if (body !== undefined && typeof given.body === "object") headers["content-type"] ??= "application/json";
  return {
    url,
    method,
    headers,
    ...(body === undefined ? {} : { body }),
    idempotent,
    idempotencyHeader: keyHeader,
  };
}

function readBody(given: unknown, method: HttpMethod): string | undefined {
  if (given === undefined) return undefined;
  if (method === "GET" || method === "HEAD") {
    throw new UkemiError(
      "invalid_option",
      `body must be left out with ${method}: put what is asked in the url.`,
    );
  }
  const body = typeof given === "string" ? given : jsonOf(given);
  // PostgreSQL keeps no NUL
  if (body === undefined || body.includes("\0")) {
    throw new UkemiError(
      "invalid_option",
      "body must be a text without NUL, or a plain object or array that can be written as JSON; encode all else first.",
    );
  }
  const bytes = Buffer.byteLength(body);
  if (bytes > BODY_BYTES_MAX) {
    throw new UkemiError(
      "invalid_option",
      `body must not be larger than ${BODY_BYTES_MAX} bytes, it has ${bytes}: send a reference to where it lies.`,
    );
  }
  return body;
}

/** Undefined where JSON would not say what was meant: of a form, a map or a buffer little or nothing would be left. */
function jsonOf(given: unknown): string | undefined {
  if (typeof given !== "object" || given === null) return undefined;
  const prototype: unknown = Object.getPrototypeOf(given);
  if (!Array.isArray(given) && prototype !== Object.prototype && prototype !== null) return undefined;
  try {
    return JSON.stringify(given);
  } catch {
    return undefined;
  }
}
