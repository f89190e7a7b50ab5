// Reading the identity of an event whose sender signs with a plain HMAC: from headers, or by path from the body.
import { createHash } from "node:crypto";
import { readContent, readContentOptions } from "./content.ts";
import type { ContentOptions } from "./content.ts";
import { invalidOption, readHeaderName, readPath } from "./options.ts";
import { identifierAt, isIdentifier, readJsonObject } from "./payload.ts";
import type { JsonObject } from "./payload.ts";
import { refuse } from "./signature.ts";
import type { HeaderMap, Identity, Refusal, SignedRequest } from "./source.ts";

/** A value in a header, which such senders do not sign, or at a path of the signed body. */
export type Field = { readonly header: string } | { readonly path: string };

/** Where an event's id and type stand. */
export interface HmacFields {
  /**
   * The event's id. A header is not covered by the signature: who has seen a request can send it again under a new id.
   * Prefer a path, or `"body-sha256"`, which makes equal bodies one event.
   */
  readonly id: Field | "body-sha256";
  /** The event's type; text stands for itself. */
  readonly type: Field | string;
}

/** Checks the options at construction; header names come back in lower case. */
export function readHmacFields(options: HmacFields & ContentOptions): HmacFields & ContentOptions {
  readContentOptions("hmac", options);
  const { id, type } = options;
  if (typeof id === "string" && id !== "body-sha256") {
    throw invalidOption("hmac", 'id must be { header }, { path } or "body-sha256"');
  }
  if (typeof type === "string" && !isIdentifier(type))
    throw invalidOption("hmac", "type is blank or too long");
  return {
    ...options,
    id: typeof id === "string" ? id : readField("id", id),
    type: typeof type === "string" ? type : readField("type", type),
  };
}

function readField(option: string, field: Field): Field {
  if (typeof field !== "object" || field === null) throw invalidOption("hmac", `${option} is missing`);
  return "header" in field
    ? { header: readHeaderName("hmac", `${option}.header`, field.header) }
    : { path: readPath("hmac", `${option}.path`, field.path) };
}

/** Reads the identity out of a verified request. A body that nothing is read from need not be JSON. */
export function identifyHmacEvent(
  { headers, body }: SignedRequest,
  options: HmacFields & ContentOptions,
): Identity | Refusal {
  const parsed = looksInside(options) ? readJsonObject(body) : { object: {} };
  if ("refused" in parsed) return parsed;
  const { id, type } = options;
  const eventId =
    id === "body-sha256"
      ? createHash("sha256").update(body).digest("hex")
      : fieldValue(id, headers, parsed.object);
  if (eventId === undefined) return refuse("invalid_payload", `there is no proper event id ${place(id)}`);
  const typeText = typeof type === "string" ? type : fieldValue(type, headers, parsed.object);
  if (typeText === undefined)
    return refuse("invalid_payload", `there is no proper event type ${place(type)}`);
  const content = readContent(parsed.object, options);
  if ("refused" in content) return content;
  return { eventId, type: typeText, livemode: true, occurredAt: null, ...content };
}

function looksInside({ id, type, tenant, refs = {} }: HmacFields & ContentOptions): boolean {
  const fields = [id, type, tenant];
  return Object.keys(refs).length > 0 || fields.some((field) => typeof field === "object" && "path" in field);
}

function fieldValue(field: Field, headers: HeaderMap, object: JsonObject): string | undefined {
  if ("path" in field) return identifierAt(object, field.path);
  const value = headers[field.header];
  return isIdentifier(value) ? value : undefined;
}

function place(field: Field | string): string {
  if (typeof field === "string") return "";
  return "path" in field ? `at ${field.path} of the body` : `in the ${field.header} header`;
}
