// Standard Webhooks as a source (standardwebhooks.com): `v1` HMAC-SHA256 over id, time and raw bytes.
import { readAddresses } from "./addresses.ts";
import { readContent, readContentOptions } from "./content.ts";
import type { ContentOptions } from "./content.ts";
import { readPath, readSecrets, readTolerance } from "./options.ts";
import type { ReadKey } from "./options.ts";
import { identifierAt, isIdentifier, readDate, readJsonObject } from "./payload.ts";
import { decodeDigest, judge, readDecimal, readHeader, refuse } from "./signature.ts";
import type { Claim } from "./signature.ts";
import type { HeaderMap, Identity, Refusal, SignedRequest, Source } from "./source.ts";

/** How a Standard Webhooks sender's events are verified and read. */
export interface StandardWebhooksOptions extends ContentOptions {
  /** Signing secrets: base64 of 24 to 64 bytes, with or without `whsec_`; several while one is being rolled. */
  readonly secrets: readonly string[];
  /**
   * How far the signed time may lie from now, in seconds, in either direction.
   * @default 300
   */
  readonly toleranceSeconds?: number;
  /**
   * Addresses or ranges that may send; empty means any.
   * @default []
   */
  readonly allowedAddresses?: readonly string[];
  /**
   * Path of the event's type in the body.
   * @default "type"
   */
  readonly type?: string;
}

/** Receives from a Standard Webhooks sender (or Svix, whose headers start with `svix-`). */
export function standardWebhooks<E = unknown>(options: StandardWebhooksOptions): Source<E> {
  const secrets = readSecrets("standardWebhooks", options.secrets, base64Key);
  const toleranceSeconds = readTolerance("standardWebhooks", options.toleranceSeconds);
  const typePath = readPath("standardWebhooks", "type", options.type ?? "type");
  readContentOptions("standardWebhooks", options);
  return {
    kind: "standard-webhooks",
    allowedAddresses: readAddresses(options.allowedAddresses),
    verify(request, nowMs, { diagnose } = { diagnose: true }) {
      const claim = readClaim(request.headers);
      if ("refused" in claim) return claim;
      return judge(claim, request.body, { secrets, toleranceSeconds, nowMs, diagnose });
    },
    identify: (request) => identify(request, typePath, options),
  };
}

const base64Key: ReadKey = (text) => {
  if (text.startsWith("whpk_") || text.startsWith("whsk_")) {
    return { wrong: "is a key of the asymmetric scheme v1a; pass the symmetric secret (whsec_…)" };
  }
  const base64 = text.replace(/^whsec_/, "");
  const key = Buffer.from(base64, "base64");
  if (key.toString("base64") !== base64 || key.length < 24 || key.length > 64) {
    return { wrong: "is not base64 of 24 to 64 bytes; pass it as the sender shows it (whsec_…)" };
  }
  return key;
};

/** Svix sends the same under its own names. Both steps must read the same set: only that id is signed. */
function prefixOf(headers: HeaderMap): "webhook" | "svix" {
  return headers["webhook-id"] === undefined && headers["svix-id"] !== undefined ? "svix" : "webhook";
}

/** Reads id, time and the space-separated `v1,<base64>`; other schemes (`v1a`) do not count. */
function readClaim(headers: HeaderMap): Claim | Refusal {
  const prefix = prefixOf(headers);
  const id = readHeader(headers, `${prefix}-id`, 255);
  if (typeof id !== "string") return id;
  const timeText = readHeader(headers, `${prefix}-timestamp`);
  if (typeof timeText !== "string") return timeText;
  const header = readHeader(headers, `${prefix}-signature`);
  if (typeof header !== "string") return header;

  const signedAtSeconds = readDecimal(timeText);
  if (signedAtSeconds === undefined) return malformed(`${prefix}-timestamp`);
  const signatures = header.split(" ").map((signature) => signature.split(","));
  if (signatures.some((parts) => parts.length !== 2)) return malformed(`${prefix}-signature`);
  const digests = signatures
    .filter(([scheme]) => scheme === "v1")
    .map(([, text = ""]) => decodeDigest(text, "base64", 32))
    .filter((digest) => digest !== undefined);
  if (digests.length === 0) return malformed(`${prefix}-signature`);

  return {
    digests,
    signedAtSeconds,
    signed: (body) => [`${id}.${timeText}.`, body],
  };
}

function identify(
  { headers, body }: SignedRequest,
  typePath: string,
  options: ContentOptions,
): Identity | Refusal {
  const parsed = readJsonObject(body);
  if ("refused" in parsed) return parsed;
  const prefix = prefixOf(headers);
  const eventId = headers[`${prefix}-id`];
  if (!isIdentifier(eventId)) return refuse("invalid_payload", `the ${prefix}-id header is not a proper id`);
  const type = identifierAt(parsed.object, typePath);
  if (type === undefined) return refuse("invalid_payload", `the body has no proper type at ${typePath}`);
  const content = readContent(parsed.object, options);
  if ("refused" in content) return content;
  const signedAt = Number(headers[`${prefix}-timestamp`]);
  const occurredAt = readDate(parsed.object.timestamp) ?? readDate(signedAt);
  return { eventId, type, livemode: true, occurredAt, ...content };
}

function malformed(name: string): Refusal {
  return refuse("signature_malformed", `the ${name} header cannot be read`);
}
