// Reading the identity of an SNS message: SES's notices by what they tell, confirmations, and any other notification.
import { readDate } from "./payload.ts";
import { createRefList } from "./refs.ts";
import { readSesNotice } from "./ses-notice.ts";
import { readEnvelope } from "./sns-envelope.ts";
import type { Identity, Refusal } from "./source.ts";

const TYPES = {
  Notification: "sns.notification",
  SubscriptionConfirmation: "sns.subscription_confirmation",
  UnsubscribeConfirmation: "sns.unsubscribe_confirmation",
} as const;

/** Reads the identity out of a verified body, from nothing but what is signed. */
export function identifySnsEvent(body: Buffer): Identity | Refusal {
  const read = readEnvelope(body, "invalid_payload");
  if ("refused" in read) return read;
  const { envelope } = read;
  const notice = readSesNotice(envelope);
  const refs = createRefList();
  refs.add("effect", notice?.effect);
  refs.add("ses_message", notice?.messageId);
  return {
    eventId: envelope.MessageId,
    type: notice ? `ses.${notice.kind}` : TYPES[envelope.Type],
    account: "",
    livemode: true,
    tenant: null,
    occurredAt: notice?.at ?? readDate(envelope.Timestamp),
    refs: refs.list,
  };
}
