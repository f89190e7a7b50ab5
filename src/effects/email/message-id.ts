// The Message-ID of an effect's mail: the same for every try, so that whoever gets two can tell that they are one.
import { domainOf, readSender } from "./mailbox.ts";

/** `<effect@domain of the sender>`. Throws where the sender has no mailbox: nothing could be sent from it. */
export function messageIdFor(effect: string, from: string): string {
  const domain = domainOf(readSender(from)?.mailbox ?? "");
  if (domain === undefined) throw new TypeError("the sender of a mail must be a mailbox, or Name <mailbox>");
  return `<${effect}@${domain}>`;
}
