// A mail as it goes over the wire, the same whoever carries it.
import MailComposer from "nodemailer/lib/mail-composer";
import { isMailbox, readSender, type Sender } from "./mailbox.ts";
import type { Mail } from "./transport.ts";

/** By which a bounce is matched where the carrier writes a Message-ID of its own, as SES does. */
const EFFECT_HEADER = "X-Ukemi-Effect";

/** Headers that a mail has anyway: a second one would make it another mail, or one to somebody else. */
const OWN_HEADERS =
  /^(?:to|cc|bcc|from|sender|reply-to|subject|date|message-id|mime-version|content-.*|x-ukemi-effect)$/i;
// oxlint-disable-next-line no-control-regex -- they are what it looks for
const CONTROL = /[\u0000-\u001f\u007f]/;

/** The bytes, and whom they are from and for, as the server is told. */
export interface Letter {
  readonly raw: Buffer;
  readonly from: string;
  readonly to: string;
}

/** A mail that no server should ever see. The message repeats nothing of it. */
export class BadMail extends Error {
  override readonly name = "BadMail";
}

/** Rejects with a {@link BadMail} where it cannot be written: nothing of it has been sent. */
export async function compose(mail: Mail): Promise<Letter> {
  const from = readSender(mail.from);
  const replyTo = mail.replyTo === undefined ? undefined : readSender(mail.replyTo);
  if (!from) throw new BadMail("The sender is not a mailbox.");
  if (!isMailbox(mail.to)) throw new BadMail("The recipient is not a mailbox.");
  if (mail.replyTo !== undefined && !replyTo) throw new BadMail("The reply address is not a mailbox.");
  for (const [name, value] of Object.entries(mail.headers ?? {})) {
    if (!/^[\w-]+$/.test(name) || OWN_HEADERS.test(name) || CONTROL.test(value)) {
      throw new BadMail("A header is not allowed, or its value has a line break in it.");
    }
  }
  try {
    return await write(mail, from, replyTo);
  } catch (cause) {
    throw cause instanceof BadMail ? cause : new BadMail("The mail cannot be written.", { cause });
  }
}

async function write(mail: Mail, from: Sender, replyTo: Sender | undefined): Promise<Letter> {
  const message = new MailComposer({
    messageId: mail.messageId,
    // as objects: nothing in a name can become another address
    from: { name: from.name, address: from.mailbox },
    to: { name: "", address: mail.to },
    ...(replyTo && { replyTo: { name: replyTo.name, address: replyTo.mailbox } }),
    subject: mail.subject,
    text: mail.text,
    ...(mail.html !== undefined && { html: mail.html }),
    headers: { ...mail.headers, [EFFECT_HEADER]: mail.effect },
    disableFileAccess: true,
    disableUrlAccess: true,
    newline: "win",
  }).compile();
  const envelope = message.getEnvelope();
  const [to, ...others] = envelope.to;
  if (typeof envelope.from !== "string" || to === undefined || others.length > 0) {
    throw new BadMail("A mail has one sender and one recipient.");
  }
  return { raw: await message.build(), from: envelope.from, to };
}
