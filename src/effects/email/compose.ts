// A mail as it goes over the wire, the same whoever carries it.
import MailComposer from "nodemailer/lib/mail-composer";
import { isMailbox, mailboxOf } from "./mailbox.ts";
import type { Mail } from "./transport.ts";

/** By which a bounce is matched where the carrier writes a Message-ID of its own, as SES does. */
export const EFFECT_HEADER = "X-Ukemi-Effect";

/** The bytes, and whom they are from and for. */
export interface Letter {
  readonly raw: Buffer;
  readonly from: string;
  readonly to: string;
}

/** A mail that no server should ever see. The message names no address. */
export class BadMail extends Error {
  override readonly name = "BadMail";
}

/** Rejects where the mail cannot be written: nothing of it has been sent. */
export async function compose(mail: Mail): Promise<Letter> {
  const from = mailboxOf(mail.from);
  if (from === undefined) throw new BadMail("The sender is not a mailbox.");
  if (!isMailbox(mail.to)) throw new BadMail("The recipient is not a mailbox.");
  if (mail.replyTo !== undefined && mailboxOf(mail.replyTo) === undefined) {
    throw new BadMail("The reply address is not a mailbox.");
  }
  const message = new MailComposer({
    messageId: mail.messageId,
    from: mail.from,
    to: mail.to,
    ...(mail.replyTo !== undefined && { replyTo: mail.replyTo }),
    subject: mail.subject,
    text: mail.text,
    ...(mail.html !== undefined && { html: mail.html }),
    headers: { ...mail.headers, [EFFECT_HEADER]: mail.effect },
    // a text that looks like a path or a URL is still a text
    disableFileAccess: true,
    disableUrlAccess: true,
    newline: "win",
  }).compile();
  const envelope = message.getEnvelope();
  const [to, ...others] = envelope.to;
  // what was checked above and what is written must be the same: one sender, one recipient
  if (typeof envelope.from !== "string" || to === undefined || others.length > 0) {
    throw new BadMail("A mail has one sender and one recipient.");
  }
  return { raw: await message.build(), from: envelope.from, to };
}
