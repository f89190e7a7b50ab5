// Judging a signature: every driver reads its own headers into a claim, and the claim is judged here.
import { createHash, timingSafeEqual } from "node:crypto";
import { bodyAsSent } from "./altered.ts";
import type { Mac } from "./mac.ts";
import type { HeaderMap, Refusal, RefusalReason, Verified } from "./source.ts";

/** A signing secret, ready for use. */
export interface Secret {
  readonly mac: Mac;
  readonly fingerprint: string;
}

/** What a request's headers claim: these digests were made of this body at this time. */
export interface Claim {
  /** The decoded digests; any one of them may match. */
  readonly digests: readonly Buffer[];
  /** When it was signed, in seconds since 1970; absent where the sender signs no time. */
  readonly signedAtSeconds?: number;
  /** What is signed where the body is this one, in its parts. */
  signed(body: Buffer): readonly (string | Buffer)[];
}

/** What a claim is judged against. */
export interface Bench {
  readonly secrets: readonly Secret[];
  readonly toleranceSeconds: number;
  readonly nowMs: number;
  /** Whether to find out that the body was changed on its way, which costs more than the judgement itself. */
  readonly diagnose: boolean;
}

/** Names a secret without telling it: the first 12 hex digits of its SHA-256. */
export function fingerprint(secret: string): string {
  return createHash("sha256").update(secret).digest("hex").slice(0, 12);
}

/** Compares in constant time; digests of different length are simply unequal. */
export function sameDigest(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Decodes a digest that is written in the one canonical way and has the right length; undefined otherwise. */
export function decodeDigest(text: string, encoding: DigestEncoding, bytes: number): Buffer | undefined {
  const digest = Buffer.from(text, encoding);
  // `Buffer.from` passes over what it does not understand; writing the digest again shows that nothing was.
  return digest.length === bytes && digest.toString(encoding) === text ? digest : undefined;
}

/** How a digest is written: lower-case hex, padded base64, or base64url without padding. */
export type DigestEncoding = "hex" | "base64" | "base64url";

/** A refusal with its diagnosis. */
export function refuse(refused: RefusalReason, diagnosis: string): Refusal {
  return { refused, diagnosis };
}

/** A header's one value, or a refusal: a header sent twice leaves open which of the two was meant. */
export function readHeader(headers: HeaderMap, name: string, charactersMax = 4096): string | Refusal {
  const value = headers[name];
  if (value === undefined) return refuse("signature_missing", `the ${name} header is missing`);
  if (typeof value !== "string") return refuse("signature_malformed", `the ${name} header was sent twice`);
  if (value.trim() === "") return refuse("signature_malformed", `the ${name} header is blank`);
  if (value.length > charactersMax) {
    return refuse("signature_malformed", `the ${name} header is longer than ${charactersMax} characters`);
  }
  return value;
}

/** A plain positive decimal number: no sign, exponent, fraction, leading zero or space. */
export function readDecimal(text: string): number | undefined {
  return /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : undefined;
}

/** Refuses a signature made too long ago, or too far ahead: a future time would stay valid for long. */
export function checkAge(signedAtSeconds: number, nowMs: number, toleranceSeconds: number): Refusal | null {
  const ageSeconds = Math.floor(nowMs / 1000) - signedAtSeconds;
  // Asked this way round so that a clock that is not a number refuses.
  if (Math.abs(ageSeconds) <= toleranceSeconds) return null;
  const reason = ageSeconds < 0 ? "future" : "stale";
  const manner = ageSeconds < 0 ? "in the future" : "stale";
  return refuse(reason, `${manner} by ${Math.abs(ageSeconds)} s (tolerance ${toleranceSeconds} s)`);
}

/** Finds the secret that made one of the claimed digests, then checks the age; otherwise says why there is none. */
export function judge(claim: Claim, body: Buffer, bench: Bench): Verified | Refusal {
  // The digest comes first: only then is the time known to be the sender's, and "stale" is said of honest requests only.
  const age =
    claim.signedAtSeconds === undefined
      ? null
      : checkAge(claim.signedAtSeconds, bench.nowMs, bench.toleranceSeconds);
  const matching = findSecret(claim, body, bench.secrets);
  if (matching) return age ?? { secretFingerprint: matching.fingerprint };

  const sent =
    bench.diagnose &&
    bodyAsSent(body, (candidate) => findSecret(claim, candidate, bench.secrets) !== undefined);
  if (sent) return refuse("body_altered", `the body was changed on its way here: ${sent}`);

  const fingerprints = bench.secrets.map((secret) => secret.fingerprint).join(", ");
  const also = age ? `; besides, it is ${age.diagnosis}` : "";
  return refuse("wrong_secret", `no configured secret matches (fingerprints ${fingerprints})${also}`);
}

function findSecret(claim: Claim, body: Buffer, secrets: readonly Secret[]): Secret | undefined {
  const signed = claim.signed(body);
  return secrets.find(({ mac }) => {
    const expected = mac(...signed);
    return claim.digests.some((digest) => sameDigest(digest, expected));
  });
}
