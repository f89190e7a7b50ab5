// What went wrong with a mail, in words that may be kept: whoever wrote them, no address, no password.
import { redact } from "../../redact.ts";
import type { Fault } from "../attempt.ts";
import { withoutWords } from "../hidden.ts";
import { readSender } from "./mailbox.ts";
import type { Mail } from "./transport.ts";

const MESSAGE_MAX = 500;
/** Anything with an @ in it: servers also repeat `taro@localhost` and `"taro y"@example.jp`. */
const AROUND_AT = /(?:"[^"]{0,64}"|[^\s<>"'(),;:[\]]{0,64})@[^\s<>"'(),;:]{1,255}/g;
const IPV6 = /(?<![\w:])(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{0,4}(?![\w:])/gi;

/** A fault that says no more than it may. */
export function faultOf(fault: Fault, hidden: readonly string[]): Fault {
  return { ...fault, message: keepable(fault.message, hidden) };
}

/** A text as it may be kept. `hidden` are the words that must not be in it: a server may repeat them alone. */
export function keepable(text: string, hidden: readonly string[]): string {
  let clean = text.slice(0, 4 * MESSAGE_MAX).replaceAll(/\s+/g, " ");
  clean = clean.replaceAll(AROUND_AT, "[address]").replaceAll(IPV6, "[address]");
  return redact(withoutWords(clean, hidden)).slice(0, MESSAGE_MAX);
}

/** The words of a mail by which a person could be known. */
export function wordsOf({ to, replyTo, subject }: Mail): string[] {
  const mailboxes = [to, replyTo].flatMap((sender) => readSender(sender ?? "")?.mailbox ?? []);
  const names = mailboxes.map((mailbox) => mailbox.slice(0, mailbox.lastIndexOf("@")));
  return [...mailboxes, ...names, subject];
}
