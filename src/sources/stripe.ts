// Stripe as a source: the `Stripe-Signature` header over the raw bytes, snapshot and thin events.
import type { Stripe } from "stripe";
import { readAddresses } from "./addresses.ts";
import { readSecrets, readTolerance } from "./options.ts";
import type { ReadKey } from "./options.ts";
import { decodeDigest, judge, readDecimal, readHeader, refuse } from "./signature.ts";
import type { Claim } from "./signature.ts";
import type { HeaderMap, Refusal, Source } from "./source.ts";
import { checkStripeReading, identifyStripeEvent } from "./stripe-event.ts";
import type { StripeReading } from "./stripe-event.ts";

/** How Stripe's events are verified and read. */
export interface StripeOptions extends StripeReading {
  /** The endpoint's signing secrets (`whsec_…`), as text; several while one is being rolled. */
  readonly secrets: readonly string[];
  /**
   * How far the signed time may lie from now, in seconds, in either direction.
   * @default 300
   */
  readonly toleranceSeconds?: number;
  /**
   * Addresses or ranges that may send, such as those of https://stripe.com/files/ips/ips_webhooks.json; empty means any.
   * @default []
   */
  readonly allowedAddresses?: readonly string[];
}

/** Receives from Stripe. Throws `invalid_option` where the options could not work. */
export function stripe(options: StripeOptions): Source<Stripe.Event> {
  const secrets = readSecrets("stripe", options.secrets, signingSecret);
  const toleranceSeconds = readTolerance("stripe", options.toleranceSeconds);
  checkStripeReading(options);
  return {
    kind: "stripe",
    allowedAddresses: readAddresses(options.allowedAddresses),
    verify(request, nowMs, { diagnose } = { diagnose: true }) {
      const claim = readClaim(request.headers);
      if ("refused" in claim) return claim;
      return judge(claim, request.body, { secrets, toleranceSeconds, nowMs, diagnose });
    },
    identify: (request) => identifyStripeEvent(request.body, options),
  };
}

/** The whole text is the key, `whsec_` included: Stripe does not decode it, unlike Standard Webhooks. */
const signingSecret: ReadKey = (text) => {
  if (/^[srp]k_/.test(text)) {
    return { wrong: "is an API key; pass the endpoint's signing secret, which starts with whsec_" };
  }
  if (text.includes(",")) return { wrong: "holds a comma; pass several secrets as several items" };
  return Buffer.from(text);
};

/** Reads `t=<seconds>,v1=<hex>[,v1=<hex>…]`. Schemes other than `v1` do not count: they invite a downgrade. */
function readClaim(headers: HeaderMap): Claim | Refusal {
  const header = readHeader(headers, "stripe-signature");
  if (typeof header !== "string") return header;
  // Stripe sends no spaces; where there is one, a proxy or `node:http` has joined two headers into one.
  if (/\s/.test(header)) return malformed("it contains white space, as when it is sent twice");

  const times: string[] = [];
  const digests: Buffer[] = [];
  for (const part of header.split(",")) {
    if (part.startsWith("t=")) times.push(part.slice(2));
    const digest = part.startsWith("v1=") ? decodeDigest(part.slice(3), "hex", 32) : undefined;
    if (digest) digests.push(digest);
  }
  const timeText = times[0] ?? "";
  const signedAtSeconds = readDecimal(timeText);
  if (times.length !== 1 || signedAtSeconds === undefined) return malformed("it has no single valid t=");
  if (digests.length === 0) return malformed("it has no v1= of 64 lower-case hex digits");

  return {
    digests,
    signedAtSeconds,
    signed: (body) => [`${timeText}.`, body],
  };
}

function malformed(problem: string): Refusal {
  return refuse("signature_malformed", `the stripe-signature header cannot be read: ${problem}`);
}
