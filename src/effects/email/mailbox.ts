// Mailboxes: what counts as one, what a mail may carry as its sender, and how one is shown in logs.
import { domainToASCII } from "node:url";

/** RFC 5321, 4.5.3.1: with the angle brackets around it, a path has 256. */
const MAILBOX_MAX = 254;
const LOCAL_MAX = 64;

/**
 * What may stand before the @. Dots may stand anywhere: carriers in Japan gave out mailboxes such as `taro..y.@docomo.ne.jp`,
 * and they receive mail (nodemailer quotes them on the wire). Names in quotes and names beyond ASCII are refused: too few servers take them.
 */
const LOCAL = /^[\w.!#$%&'*+/=?^`{|}~-]+$/;
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;
// oxlint-disable-next-line no-control-regex -- they are what it looks for
const NAMED = /^([^<>\u0000-\u001f\u007f]*)<([^<>]+)>$/;

/** Whether it is one plain mailbox: no name, no list, nothing that could end a line. */
export function isMailbox(text: string): boolean {
  const at = text.lastIndexOf("@");
  const local = text.slice(0, Math.max(0, at));
  const domain = asciiDomain(text.slice(at + 1));
  return (
    LOCAL.test(local) &&
    local.length <= LOCAL_MAX &&
    domain !== undefined &&
    local.length + 1 + domain.length <= MAILBOX_MAX
  );
}

/** Whom a mail is from. */
export interface Sender {
  /** Empty where there is none. */
  readonly name: string;
  readonly mailbox: string;
}

/** Reads `mailbox`, `Name <mailbox>` or `"Name" <mailbox>`; undefined where it is none of them. */
export function readSender(sender: string): Sender | undefined {
  const [, written = "", mailbox = sender] = NAMED.exec(sender) ?? [];
  if (!isMailbox(mailbox)) return undefined;
  return { name: written.trim().replace(/^"(.*)"$/, "$1"), mailbox };
}

/** The domain of a mailbox as it goes over the wire; undefined where it is none. */
export function domainOf(mailbox: string): string | undefined {
  return isMailbox(mailbox) ? asciiDomain(mailbox.slice(mailbox.lastIndexOf("@") + 1)) : undefined;
}

/** A mailbox for logs: `t***@e***.jp`. Tells apart what an operator compares, and nobody can write to it. */
export function maskMailbox(mailbox: string): string {
  const at = mailbox.lastIndexOf("@");
  const domain = mailbox.slice(at + 1);
  const dot = domain.lastIndexOf(".");
  if (at < 1 || domain === "") return "***";
  const ending = dot < 1 ? "" : domain.slice(dot);
  return `${first(mailbox)}***@${first(domain)}***${ending}`;
}

/** The first character, also where it takes two units of UTF-16. */
function first(text: string): string {
  return String.fromCodePoint(text.codePointAt(0) ?? 42);
}

function asciiDomain(domain: string): string | undefined {
  // blanks and the like would be taken out silently, and what is left would be another domain
  if (!/^[\p{L}\p{M}\p{N}.-]+$/u.test(domain)) return undefined;
  const ascii = domainToASCII(domain);
  const labels = ascii.split(".");
  return ascii !== "" && labels.every((label) => LABEL.test(label)) && !/^\d+$/.test(labels.at(-1)!)
    ? ascii
    : undefined;
}
