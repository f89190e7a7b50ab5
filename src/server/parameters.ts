// Reading what a caller asks for: query parameters and JSON bodies by their schemas, with errors that name what is wrong.
import type { TObject, TSchema } from "typebox";
import { Value } from "typebox/value";
import { UkemiError } from "../errors.ts";
import { wrong } from "../operate/mandate.ts";

/** Room for a thousand ids and a reason. */
const BODY_BYTES_MAX = 64 * 1024;

/** What a schema may say about itself beside JSON Schema. */
type Field = TSchema & {
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Field>>;
};

/** The query of a request: each parameter once, those that are numbers or booleans as such. */
export function readQuery(query: URLSearchParams, schema: TObject): Readonly<Record<string, unknown>> {
  const given = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of query) {
    if (name in given) throw wrong(name, "must be given once");
    given[name] = value;
  }
  return readFields(given, schema, (field, value) => Value.Convert(field, value));
}

/** The fields of a JSON object. */
export async function readBody(
  request: Request,
  schema: TObject,
): Promise<Readonly<Record<string, unknown>>> {
  // a web page may send other types to this machine without asking: only this one makes its browser ask first
  if (!/^application\/json(?:;|$)/i.test(request.headers.get("content-type") ?? "")) throw notJson();
  let body: unknown;
  try {
    body = JSON.parse(await readText(request));
  } catch (error) {
    throw error instanceof SyntaxError ? notJson() : error;
  }
  if (!isObject(body)) throw notJson();
  return readFields(body, schema, (_, value) => value);
}

/** Refuses fields that nobody would read, what is missing, and what a field does not take; the first fault is named. */
function readFields(
  given: Readonly<Record<string, unknown>>,
  schema: TObject,
  convert: (field: TSchema, value: unknown) => unknown,
): Readonly<Record<string, unknown>> {
  const fields = schema.properties as Readonly<Record<string, Field>>;
  const known = Object.keys(fields);
  const read: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(fields, name)) {
      throw wrong(
        name,
        known.length === 0 ? "is not known here" : `is not known; known are ${known.join(", ")}`,
      );
    }
    read[name] = readField(name, fields[name]!, convert(fields[name]!, value));
  }
  for (const name of (schema.required ?? []) as readonly string[]) {
    if (read[name] === undefined) throw wrong(name, expectationOf(fields[name]!));
  }
  return read;
}

function readField(name: string, field: Field, value: unknown): unknown {
  if (typeof value === "string" && value.includes("\u0000"))
    throw wrong(name, "must not contain a NUL character");
  // an object's own faults are named by its own fields
  if (field.type === "object" && field.properties && isObject(value)) {
    return readFields(value, field as unknown as TObject, (_, inner) => inner);
  }
  if (field.format === "date-time" ? !isTime(value) : !Value.Check(field, value)) {
    throw wrong(name, expectationOf(field));
  }
  return value;
}

/** What a field takes, in words that complete "The parameter … ". */
export function expectationOf(field: TSchema): string {
  const { type, format, enum: words, minimum, maximum, maxLength, maxItems } = field as Field;
  if (words) return `must be one of ${words.join(", ")}`;
  if (format === "date-time") return "must be a time in ISO 8601, such as 2026-11-15T09:00:00Z";
  if (type === "boolean") return "must be true or false";
  if (type === "array") return `must be a list${maxItems === undefined ? "" : ` of 1 to ${maxItems}`}`;
  if (type === "object") return "must be an object";
  if (type === "integer" || type === "number") {
    const what = type === "integer" ? "a whole number" : "a number";
    if (minimum === undefined) return `must be ${what}`;
    return `must be ${what} from ${minimum}${maximum === undefined ? " up" : ` to ${maximum}`}`;
  }
  return maxLength === undefined ? "must be text" : `must be text of 1 to ${maxLength} characters`;
}

const isTime = (value: unknown) =>
  typeof value === "string" && /^\d{4}-\d{2}-\d{2}/.test(value) && !Number.isNaN(new Date(value).getTime());

/** Stops reading as soon as the limit is passed. */
async function readText(request: Request): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) {
      throw new UkemiError("payload_too_large", `The body must be of at most ${BODY_BYTES_MAX} bytes.`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function notJson(): UkemiError {
  return new UkemiError(
    "invalid_parameter",
    "The body must be a JSON object, sent with content-type: application/json.",
  );
}
