// Any sender that signs its body with an HMAC in a header: GitHub, Slack, Shopify and most home-made ones.
import { readAddresses } from "./addresses.ts";
import type { ContentOptions } from "./content.ts";
import { identifyHmacEvent, readHmacFields } from "./hmac-event.ts";
import type { HmacFields } from "./hmac-event.ts";
import type { MacAlgorithm } from "./mac.ts";
import { invalidOption, readHeaderName, readSecrets, readTolerance, textKey } from "./options.ts";
import { decodeDigest, judge, readDecimal, readHeader, refuse } from "./signature.ts";
import type { Claim, DigestEncoding } from "./signature.ts";
import type { HeaderMap, Refusal, Source } from "./source.ts";

const digestBytes = Object.freeze({ sha1: 20, sha256: 32, sha512: 64 });

/** How the signature is made and where it is found, and how the event is read. */
export interface HmacOptions extends HmacFields, ContentOptions {
  /** Signing secrets as text; several while one is being rolled. */
  readonly secrets: readonly string[];
  /** The header that carries the signature, such as `x-hub-signature-256`. */
  readonly header: string;
  /** @default "sha256" */
  readonly algorithm?: MacAlgorithm;
  /**
   * How the signature is written: lower-case hex, padded base64, or base64url without padding.
   * @default "hex"
   */
  readonly encoding?: DigestEncoding;
  /**
   * What stands before the signature in its header, such as `sha256=`.
   * @default ""
   */
  readonly prefix?: string;
  /** The signed time. Without it an old request can be sent again by anyone who saw it; only its id stops it then. */
  readonly timestamp?: HmacTimestamp;
  /**
   * Addresses or ranges that may send; empty means any.
   * @default []
   */
  readonly allowedAddresses?: readonly string[];
}

/** A time that is signed along with the body. */
export interface HmacTimestamp {
  /** The header that carries the time. */
  readonly header: string;
  /**
   * How far the signed time may lie from now, in seconds, in either direction.
   * @default 300
   */
  readonly toleranceSeconds?: number;
  /** @default "seconds" */
  readonly unit?: "seconds" | "milliseconds";
  /**
   * What is signed: text with `{timestamp}` and, once, `{body}`; Slack's is `v0:{timestamp}:{body}`.
   * @default "{timestamp}.{body}"
   */
  readonly message?: string;
}

/** Receives from a sender that signs with an HMAC. Throws `invalid_option` where the options could not work. */
export function hmac<E = unknown>(options: HmacOptions): Source<E> {
  const scheme = readScheme(options);
  const secrets = readSecrets("hmac", options.secrets, textKey, scheme.algorithm);
  const toleranceSeconds = readTolerance("hmac", options.timestamp?.toleranceSeconds);
  const fields = readHmacFields(options);
  return {
    kind: "hmac",
    allowedAddresses: readAddresses(options.allowedAddresses),
    verify(request, nowMs, { diagnose } = { diagnose: true }) {
      const claim = readClaim(request.headers, scheme);
      if ("refused" in claim) return claim;
      return judge(claim, request.body, { secrets, toleranceSeconds, nowMs, diagnose });
    },
    identify: (request) => identifyHmacEvent(request, fields),
  };
}

type Scheme = ReturnType<typeof readScheme>;

function readScheme(options: HmacOptions) {
  const { algorithm = "sha256", encoding = "hex", prefix = "", timestamp } = options;
  if (!Object.hasOwn(digestBytes, algorithm))
    throw invalidOption("hmac", "algorithm is not sha1, sha256 or sha512");
  if (!["hex", "base64", "base64url"].includes(encoding)) {
    throw invalidOption("hmac", "encoding is not hex, base64 or base64url");
  }
  const message = timestamp ? (timestamp.message ?? "{timestamp}.{body}") : "{body}";
  // A time that is not signed proves nothing: anyone could write a new one beside an old signature.
  if (timestamp && !message.includes("{timestamp}")) {
    throw invalidOption("hmac", "timestamp.message has no {timestamp}, so that the time would not be signed");
  }
  const [before = "", after, ...more] = message.split("{body}");
  if (after === undefined || more.length > 0) {
    throw invalidOption("hmac", "timestamp.message must have {body} exactly once");
  }
  return {
    header: readHeaderName("hmac", "header", options.header),
    timeHeader: timestamp && readHeaderName("hmac", "timestamp.header", timestamp.header),
    unitsPerSecond: timestamp?.unit === "milliseconds" ? 1000 : 1,
    algorithm,
    encoding,
    prefix,
    before,
    after,
  };
}

function readClaim(headers: HeaderMap, scheme: Scheme): Claim | Refusal {
  const header = readHeader(headers, scheme.header);
  if (typeof header !== "string") return header;
  const text = header.startsWith(scheme.prefix) ? header.slice(scheme.prefix.length) : "";
  const digest = decodeDigest(text, scheme.encoding, digestBytes[scheme.algorithm]);
  if (!digest) return malformed(scheme.header);

  const timeText = scheme.timeHeader === undefined ? "" : readHeader(headers, scheme.timeHeader);
  if (typeof timeText !== "string") return timeText;
  const time = readDecimal(timeText);
  if (scheme.timeHeader !== undefined && time === undefined) return malformed(scheme.timeHeader);

  const before = scheme.before.replaceAll("{timestamp}", timeText);
  const after = scheme.after.replaceAll("{timestamp}", timeText);
  return {
    digests: [digest],
    ...(time !== undefined && { signedAtSeconds: Math.floor(time / scheme.unitsPerSecond) }),
    signed: (body) => [before, body, after],
  };
}

function malformed(name: string): Refusal {
  return refuse("signature_malformed", `the ${name} header cannot be read`);
}
