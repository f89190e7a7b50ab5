// Whom an SMTP server means by a refusal that will not change: one address, one mail, or everything that comes from us.

/** What the server said, as far as a program can use it. */
export interface Reply {
  readonly code: number;
  /** The enhanced status (RFC 3463), such as `5.1.1`. */
  readonly status: string | undefined;
  readonly text: string;
  /** The command it answered, as nodemailer names it: `RCPT TO`, `DATA`; `CONN` for the greeting. */
  readonly command: string;
}

/** `recipient`: the address itself. `us`: the account, the password, this machine. */
export type Refused = "recipient" | "sender" | "message" | "us";

/** Before a mail is spoken of, only we can be meant. */
const ABOUT_US = /^(?:CONN|EHLO|HELO|STARTTLS|AUTH)/;
/** What an account lacks, told with the code of a refused mail. */
const NOT_ALLOWED = /not verified|access denied|sending.{0,20}(?:paused|suspended|disabled)/i;
const NO_RELAY = /\brelay(?:ing)?\b/i;
const OF_RECIPIENT =
  /recipient address rejected|no such user|(?:user|recipient) unknown|(?:unknown|invalid) (?:user|recipient)/i;
/** Not a policy (5.7.x), nor a full mailbox (5.2.2): those are no reason never to write to the address again. */
const STATUS_OF_RECIPIENT = /^5\.(?:1\.(?:[012346]|10)|2\.[01]|4\.1)$/;
const STATUS_OF_SENDER = /^5\.1\.[78]$/;

/**
 * Whom a refusal with 5xx concerns. One that is taken to mean us stops all mail: where an answer to `RCPT TO` may be about
 * this one address, it is.
 */
export function refusedBy({ code, status, text, command }: Reply): Refused {
  if (ABOUT_US.test(command) || code === 530 || code === 535) return "us";
  const isOfRecipient = OF_RECIPIENT.test(text) || (status !== undefined && STATUS_OF_RECIPIENT.test(status));
  if (command !== "MAIL FROM" && isOfRecipient) return "recipient";
  if (NO_RELAY.test(text)) return "us";
  if (command !== "RCPT TO" && code === 554 && NOT_ALLOWED.test(text)) return "us";
  if (status !== undefined && STATUS_OF_SENDER.test(status)) return "sender";
  if (![550, 551, 553].includes(code)) return "message";
  if (command === "MAIL FROM") return "sender";
  return command === "RCPT TO" && status === undefined ? "recipient" : "message";
}
