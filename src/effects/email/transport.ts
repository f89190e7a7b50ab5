// The contract of whoever carries mail: one call is one try on the wire, and its outcome is never thrown.
import type { AttemptResult, CallLimits } from "../attempt.ts";

/** One mail to one person, rendered and ready to go. */
export interface Mail {
  /** The id of the effect (a UUID): what a bounce is matched by. */
  readonly effect: string;
  /** The same for every try (see {@link messageIdFor}), so that a duplicate can be proven. */
  readonly messageId: string;
  /** One plain mailbox. */
  readonly to: string;
  /** A mailbox, or `Name <mailbox>`. */
  readonly from: string;
  readonly replyTo?: string;
  readonly subject: string;
  readonly text: string;
  readonly html?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Whoever carries mail. */
export interface MailTransport {
  readonly name: string;
  /** True where it asks for its turn when it is connected. @default false */
  readonly takesTurn?: boolean;
  /** Tries once. Never rejects, and is over as soon as the limits say so. */
  send(mail: Mail, limits: CallLimits): Promise<AttemptResult>;
  /** Takes nothing more, lets what is on its way end, and lets go of every connection. */
  close(): Promise<void>;
}
