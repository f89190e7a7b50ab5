// Amazon SNS as a source: messages signed with a certificate of AWS, above all SES's notices about mail.
import { verify as verifySignature } from "node:crypto";
import { readAddresses } from "./addresses.ts";
import { invalidOption, readTolerance } from "./options.ts";
import { checkAge, decodeDigest, refuse } from "./signature.ts";
import { createCertificates, type Certificate, type Certificates } from "./sns-certificates.ts";
import { readEnvelope, signedText, type SnsEnvelope } from "./sns-envelope.ts";
import { identifySnsEvent } from "./sns-event.ts";
import { getPage, type SnsFetch } from "./sns-fetch.ts";
import { confirmationUrl, isCertificateUrl, readTopics, type Topic } from "./sns-topics.ts";
import type { Refusal, Source, Verified } from "./source.ts";

/** Which topics may send, and how their messages are verified. */
export interface SnsOptions {
  /** The ARNs of the topics that may send, and whose subscriptions are confirmed. Anybody can make a topic: others are refused. */
  readonly topics: readonly string[];
  /**
   * Accept SignatureVersion 1 (SHA-1), which AWS still gives to every new topic. Turn it off when yours have 2:
   * `aws sns set-topic-attributes --attribute-name SignatureVersion --attribute-value 2`.
   * @default true
   */
  readonly allowSha1?: boolean;
  /**
   * How old a message may be, in seconds. Its time is that of its publication and stays when it is sent again, which
   * SNS does for an hour at the most. Into the future it is 300 at the most.
   * @default 3900
   */
  readonly toleranceSeconds?: number;
  /**
   * Addresses or ranges that may send; empty means any.
   * @default []
   */
  readonly allowedAddresses?: readonly string[];
  /**
   * Asks AWS for certificates and confirms subscriptions, for instance through a proxy. It must not follow redirects.
   * @default globalThis.fetch
   */
  readonly fetch?: SnsFetch;
}

/** The hour of SNS's retries, and five minutes for clocks and the last try. */
const TOLERANCE_SECONDS = 3900;
const FUTURE_SECONDS_MAX = 300;
const HASHES: Readonly<Record<string, string>> = { "1": "RSA-SHA1", "2": "RSA-SHA256" };

/** Receives from Amazon SNS. Throws `invalid_option` where the options could not work. */
export function sns(options: SnsOptions): Source<SnsEnvelope> {
  const { allowSha1 = true, fetch = (url, init) => globalThis.fetch(url, init) } = options;
  if (typeof allowSha1 !== "boolean") throw invalidOption("sns", "allowSha1 is neither true nor false");
  if (typeof fetch !== "function") throw invalidOption("sns", "fetch is not a function");
  const toleranceSeconds = readTolerance("sns", options.toleranceSeconds ?? TOLERANCE_SECONDS);
  const terms = { topics: readTopics(options.topics), allowSha1 };
  const certificates = createCertificates(fetch);
  return {
    kind: "sns",
    allowedAddresses: readAddresses(options.allowedAddresses),
    async prepare({ body }, nowMs) {
      const read = readClaim(body, terms);
      if ("claim" in read) await certificates.fetch(read.claim.envelope.SigningCertURL, nowMs);
    },
    verify({ headers, body }, nowMs) {
      if (headers["x-amz-sns-rawdelivery"] === "true") return RAW;
      const read = readClaim(body, terms);
      return "refused" in read ? read : judge(read.claim, { certificates, nowMs, toleranceSeconds });
    },
    identify: ({ body }) => identifySnsEvent(body),
    async conclude({ body }, { type }) {
      if (type !== "sns.subscription_confirmation") return;
      const read = readClaim(body, terms);
      if ("claim" in read) await confirm(fetch, read.claim);
    },
  };
}

const RAW = refuse(
  "signature_missing",
  "the subscription has raw message delivery, which signs nothing: turn it off",
);

/** What a request claims: this topic sent it, signed in this way. Nothing of it is proven yet. */
interface Claim {
  readonly envelope: SnsEnvelope;
  readonly topic: Topic;
  readonly hash: string;
}

interface Terms {
  readonly topics: ReadonlyMap<string, Topic>;
  readonly allowSha1: boolean;
}

/** Everything that can be told without the certificate: for a foreign topic or address, nothing is fetched. */
function readClaim(body: Buffer, { topics, allowSha1 }: Terms): { readonly claim: Claim } | Refusal {
  const read = readEnvelope(body, "signature_malformed");
  if ("refused" in read) return read;
  const { envelope } = read;
  const topic = topics.get(envelope.TopicArn);
  if (!topic) return refuse("wrong_sender", "the topic is not one of those in `topics`");
  const hash = Object.hasOwn(HASHES, envelope.SignatureVersion)
    ? HASHES[envelope.SignatureVersion]
    : undefined;
  if (hash === undefined) return malformed("its SignatureVersion is neither 1 nor 2");
  if (hash === "RSA-SHA1" && !allowSha1) {
    return malformed("its SignatureVersion is 1, which allowSha1 forbids: set the topic's to 2");
  }
  if (!isCertificateUrl(envelope.SigningCertURL, topic)) {
    return malformed(`its SigningCertURL is not that of a certificate at ${topic.host}`);
  }
  return { claim: { envelope, topic, hash } };
}

interface Bench {
  readonly certificates: Certificates;
  readonly nowMs: number;
  readonly toleranceSeconds: number;
}

/** The signature comes before the age: "stale" is said of honest messages only. */
function judge(
  { envelope, hash }: Claim,
  { certificates, nowMs, toleranceSeconds }: Bench,
): Verified | Refusal {
  const certificate = certificates.find(envelope.SigningCertURL);
  if (!certificate) return malformed("there is no certificate at its SigningCertURL");
  // asked this way round so that a time that is not a number refuses
  if (!(certificate.fromMs <= nowMs && nowMs <= certificate.untilMs)) {
    return refuse("wrong_signature", "the certificate is not valid at this time");
  }
  const signed = isSigned(envelope, hash, certificate);
  if (typeof signed !== "boolean") return signed;
  if (!signed) {
    return refuse("wrong_signature", `the signature does not fit (certificate ${certificate.fingerprint})`);
  }
  const publishedAtMs = Date.parse(envelope.Timestamp);
  const tolerance = publishedAtMs > nowMs ? Math.min(FUTURE_SECONDS_MAX, toleranceSeconds) : toleranceSeconds;
  const age = checkAge(Math.floor(publishedAtMs / 1000), nowMs, tolerance);
  return age ?? { secretFingerprint: certificate.fingerprint };
}

function isSigned(envelope: SnsEnvelope, hash: string, { key }: Certificate): boolean | Refusal {
  const bytes = (key.asymmetricKeyDetails?.modulusLength ?? 0) / 8;
  const signature = decodeDigest(envelope.Signature, "base64", bytes);
  if (!signature) return malformed("its Signature is not base64 of the length of the certificate's key");
  try {
    return verifySignature(hash, Buffer.from(signedText(envelope)), key, signature);
  } catch {
    // systems whose OpenSSL has SHA-1 switched off (RHEL 9)
    return refuse("source_failed", `OpenSSL on this machine cannot check ${hash}`);
  }
}

/** Again for the same message is harmless: SNS answers with the same subscription. */
async function confirm(fetch: SnsFetch, { envelope, topic }: Claim): Promise<void> {
  const { status } = await getPage(fetch, confirmationUrl(topic, envelope.Token ?? ""));
  if (status < 200 || status > 299) throw new Error(`${topic.host} answered ${status} to the confirmation`);
}

function malformed(problem: string): Refusal {
  return refuse("signature_malformed", `the SNS message cannot be verified: ${problem}`);
}
