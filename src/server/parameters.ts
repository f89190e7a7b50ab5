// Reading what a caller asks for: query parameters and JSON bodies, with errors that name what is wrong.
import type { Context } from "hono";
import { UkemiError } from "../errors.ts";
import { wrong } from "../operate/mandate.ts";

export { wrong };

export const LIMIT_MAX = 200;
export const LIMIT_DEFAULT = 50;

/** Room for a thousand ids and a reason. */
const BODY_BYTES_MAX = 64 * 1024;

/** Refuses parameters that nobody would read, and what PostgreSQL's text cannot hold. */
export function requireKnown(given: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  for (const [name, value] of Object.entries(given)) {
    if (!known.includes(name)) throw wrong(name, `is not known; known are ${known.join(", ")}`);
    if (typeof value === "string" && value.includes("\u0000")) {
      throw wrong(name, "must not contain a NUL character");
    }
  }
}

export function readLimit(text: string): number {
  const limit = Number(text);
  if (!/^\d{1,3}$/.test(text) || limit < 1 || limit > LIMIT_MAX) {
    throw wrong("limit", `must be a whole number from 1 to ${LIMIT_MAX}`);
  }
  return limit;
}

export function readTime(name: string, text: unknown): Date {
  const time = new Date(typeof text === "string" ? text : Number.NaN);
  if (typeof text !== "string" || !/^\d{4}-\d{2}-\d{2}/.test(text) || Number.isNaN(time.getTime())) {
    throw wrong(name, "must be a time in ISO 8601, such as 2026-11-15T09:00:00Z");
  }
  return time;
}

/** The fields of a JSON object. */
export async function readBody(
  context: Context,
  known: readonly string[],
): Promise<Readonly<Record<string, unknown>>> {
  // a web page may send other types to this machine without asking: only this one makes its browser ask first
  if (!/^application\/json(?:;|$)/i.test(context.req.header("content-type") ?? "")) throw notJson();
  let body: unknown;
  try {
    body = JSON.parse(await readText(context));
  } catch (error) {
    throw error instanceof SyntaxError ? notJson() : error;
  }
  if (!isObject(body)) throw notJson();
  requireKnown(body, known);
  return body;
}

/** Stops reading as soon as the limit is passed. */
async function readText(context: Context): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of context.req.raw.body ?? []) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) {
      throw new UkemiError("payload_too_large", `The body must be of at most ${BODY_BYTES_MAX} bytes.`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function notJson(): UkemiError {
  return new UkemiError(
    "invalid_parameter",
    "The body must be a JSON object, sent with content-type: application/json.",
  );
}
