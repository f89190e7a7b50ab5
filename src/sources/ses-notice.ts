// What Amazon SES tells about a mail, in both of its forms: event publishing (`eventType`) and the older feedback (`notificationType`).
import { isObject, readDate, valueAt } from "./payload.ts";
import type { JsonObject } from "./payload.ts";

/** What SES calls it, what we call it, and the field of the message that holds the details. */
const KINDS = {
  Bounce: ["bounce", "bounce"],
  Complaint: ["complaint", "complaint"],
  Delivery: ["delivery", "delivery"],
  Send: ["send", "send"],
  Reject: ["reject", "reject"],
  Open: ["open", "open"],
  Click: ["click", "click"],
  "Rendering Failure": ["rendering_failure", "failure"],
  DeliveryDelay: ["delivery_delay", "deliveryDelay"],
  Subscription: ["subscription", "subscription"],
} as const;

/** What happened to a mail. */
export type SesKind = (typeof KINDS)[keyof typeof KINDS][0];

/** One notice of SES about one mail. Addresses and details are personal data: they do not belong into logs. */
export interface SesNotice {
  readonly kind: SesKind;
  /** The mail did not arrive and never will: a bounce of the type Permanent, a reject, a rendering failure. */
  readonly permanent: boolean;
  /** The effect that sent the mail: the tag `ukemi_effect`, where it is a UUID. The older form carries no tags. */
  readonly effect: string | undefined;
  /** SES's id of the mail. */
  readonly messageId: string;
  /** Whom it concerns: of a mail to several, only those who bounced, complained or got it. */
  readonly recipients: readonly string[];
  /** When it happened, as SES says. */
  readonly at: Date | null;
  /** The reason in SES's words, such as `Permanent/General: smtp; 550 5.1.1 user unknown`; "" where it gives none. */
  readonly detail: string;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const DETAIL_CHARACTERS_MAX = 1000;

/**
 * Reads the notice out of an SNS notification, as a handler of the source `sns` is given it; undefined where it is
 * something else than a notice of SES about a mail.
 */
export function readSesNotice(event: unknown): SesNotice | undefined {
  const text = isObject(event) && event.Type === "Notification" ? event.Message : undefined;
  const message = typeof text === "string" ? parseObject(text) : undefined;
  if (!message) return undefined;
  const name = message.eventType ?? message.notificationType;
  const messageId = valueAt(message, "mail.messageId");
  if (!isKindName(name) || typeof messageId !== "string") return undefined;

  const [kind, field] = KINDS[name];
  const facts = isObject(message[field]) ? message[field] : {};
  return {
    kind,
    permanent:
      kind === "bounce"
        ? facts.bounceType === "Permanent"
        : kind === "reject" || kind === "rendering_failure",
    effect: readEffect(valueAt(message, "mail.tags.ukemi_effect.0")),
    messageId,
    recipients: readRecipients(message, facts),
    at: readDate(facts.timestamp) ?? readDate(valueAt(message, "mail.timestamp")),
    detail: readDetail(facts).slice(0, DETAIL_CHARACTERS_MAX),
  };
}

function isKindName(name: unknown): name is keyof typeof KINDS {
  return typeof name === "string" && Object.hasOwn(KINDS, name);
}

function readEffect(tag: unknown): string | undefined {
  return typeof tag === "string" && UUID.test(tag) ? tag.toLowerCase() : undefined;
}

function readRecipients(message: JsonObject, facts: JsonObject): readonly string[] {
  const listed =
    facts.bouncedRecipients ??
    facts.complainedRecipients ??
    facts.delayedRecipients ??
    facts.recipients ??
    valueAt(message, "mail.destination");
  if (!Array.isArray(listed)) return [];
  return listed
    .map((one: unknown) => (isObject(one) ? one.emailAddress : one))
    .filter((address) => typeof address === "string");
}

function readDetail(facts: JsonObject): string {
  const kinds = [
    facts.bounceType,
    facts.bounceSubType,
    facts.complaintSubType,
    facts.complaintFeedbackType,
    facts.delayType,
  ];
  const words = [
    valueAt(facts, "bouncedRecipients.0.diagnosticCode"),
    valueAt(facts, "delayedRecipients.0.diagnosticCode"),
    facts.smtpResponse,
    facts.reason,
    facts.errorMessage,
  ];
  const texts = (values: readonly unknown[]) => values.filter((value) => typeof value === "string");
  return [texts(kinds).join("/"), ...texts(words)].filter((part) => part !== "").join(": ");
}

function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
