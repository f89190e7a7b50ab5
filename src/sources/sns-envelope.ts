// What Amazon SNS posts: a JSON envelope around a message, with the signature inside it; and the text that is signed.
import { isIdentifier, readDate, readJsonObject } from "./payload.ts";
import { refuse } from "./signature.ts";
import type { Refusal, RefusalReason } from "./source.ts";

const TYPES = ["Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"] as const;

/** The body of an SNS request, as handlers see it. SNS signs all of it but the URLs of the certificate and of unsubscribing. */
export interface SnsEnvelope {
  readonly Type: (typeof TYPES)[number];
  readonly MessageId: string;
  readonly TopicArn: string;
  /** What was published, as text; SES publishes JSON, which `readSesNotice` reads. */
  readonly Message: string;
  readonly Subject?: string | null;
  /** When it was published, in ISO 8601. */
  readonly Timestamp: string;
  /** Confirms or renews the subscription; not in notifications. */
  readonly Token?: string;
  readonly SubscribeURL?: string;
  readonly SignatureVersion: string;
  readonly Signature: string;
  readonly SigningCertURL: string;
  /** Not signed: anyone on the way could have written it. */
  readonly UnsubscribeURL?: string;
}

/** The names that are signed, in this order. */
const SIGNED = {
  Notification: ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"],
  SubscriptionConfirmation: confirmation(),
  UnsubscribeConfirmation: confirmation(),
} as const satisfies Record<SnsEnvelope["Type"], readonly (keyof SnsEnvelope)[]>;

function confirmation() {
  return ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"] as const;
}

/** Reads the envelope, or refuses for the reason that the caller's step has. The diagnosis quotes nothing of the body. */
export function readEnvelope(
  body: Buffer,
  reason: RefusalReason,
): { readonly envelope: SnsEnvelope } | Refusal {
  const parsed = readJsonObject(body);
  const not = (problem: string) => refuse(reason, `the body is not an SNS message: ${problem}`);
  if ("refused" in parsed) return not(parsed.diagnosis);
  const given = parsed.object;

  const { Type: type } = given;
  if (!isType(type)) return not("its Type is none that SNS sends");
  if (typeof given.Message !== "string") return not("its Message is not text");
  if (!isIdentifier(given.MessageId)) return not("its MessageId is not a proper id");
  if (readDate(given.Timestamp) === null) return not("its Timestamp is not a date");
  const others = ["TopicArn", "SignatureVersion", "Signature", "SigningCertURL"];
  if (type !== "Notification") others.push("Token", "SubscribeURL");
  // null is as good as absent: what is not there is not signed either
  else if ((given.Subject ?? null) !== null) others.push("Subject");
  const unfit = others.find((name) => !isLine(given[name]));
  if (unfit !== undefined) return not(`its ${unfit} is missing or not a line of text`);
  return { envelope: given as unknown as SnsEnvelope }; // every field has just been looked at
}

/** The text that SNS signs: names and values, each on a line. */
export function signedText(envelope: SnsEnvelope): string {
  return SIGNED[envelope.Type]
    .filter((name) => (envelope[name] ?? null) !== null)
    .map((name) => `${name}\n${envelope[name]}\n`)
    .join("");
}

function isType(value: unknown): value is SnsEnvelope["Type"] {
  return TYPES.some((type) => type === value);
}

/**
 * Only the message, which comes first, may have several lines: else the end of one field could pass for the beginning of
 * another, and one signature would fit two messages.
 */
function isLine(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= 4096 && !/\p{Cc}/u.test(value);
}
