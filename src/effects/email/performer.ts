// Carrying out effects of kind email: rendered when it is sent, by a template of this process, through one transport.
import type { DestinationLimits } from "../../storage/destinations.ts";
import type { Effect } from "../../storage/effects.ts";
import type { AttemptResult, CallLimits } from "../attempt.ts";
import { readOptions, wrong, type Draft, type EffectOptions } from "../draft.ts";
import type { Performer } from "../performer.ts";
import { isMailbox, maskMailbox, readSender } from "./mailbox.ts";
import { messageIdFor } from "./message-id.ts";
import type { Templates } from "./templates.ts";
import type { Mail, MailTransport } from "./transport.ts";

/** A mail that is intended. */
export interface EmailGiven extends EffectOptions {
  /** One plain mailbox. */
  readonly to: string;
  /** What the template needs. */
  readonly data?: Readonly<Record<string, unknown>>;
  /** The language of the template. @default that of the settings */
  readonly locale?: string;
  readonly replyTo?: string;
  /** True where the person has switched such mails off: it is recorded, and not sent. @default false */
  readonly switchedOff?: boolean;
  /** What the audit says of it: an office, counts, a threshold. */
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface EmailKindOptions {
  readonly transport: MailTransport;
  readonly from: string;
  /** Asked for when they are first needed. */
  readonly loadTemplates: () => Promise<Templates>;
  readonly locale: string;
  /** How often a mail is tried in all. */
  readonly tries: number;
  /** How long the calls of one mail and the waits between them may take in all. */
  readonly timeLimitMs: number;
  readonly limits: DestinationLimits;
}

export interface EmailKind extends Performer {
  /** Reads the templates, so that what is wrong with them is known from the start. */
  ready(): Promise<void>;
  /** Checks a mail, and makes it ready to be planned. */
  draft(template: string, mail: EmailGiven): Promise<Draft>;
}

/** What the ledger keeps of it. */
interface EmailIntent {
  readonly template: string;
  readonly to: string;
  readonly locale: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly replyTo?: string;
  readonly details: Readonly<Record<string, unknown>>;
}

const INTENT_BYTES_MAX = 256 * 1024;
const FIRST_DELAY_MS = 2000;
const DELAY_MS_MAX = 10_000;

export function createEmail(options: EmailKindOptions): EmailKind {
  const { transport, from, limits, timeLimitMs } = options;
  if (readSender(from) === undefined) throw wrong("email", "from must be a mailbox, or Name <mailbox>");
  const retry = {
    maxAttempts: options.tries,
    delayMs: (nth: number) => Math.min(DELAY_MS_MAX, FIRST_DELAY_MS * 2 ** (nth - 1)),
  };

  let loading: Promise<Templates> | undefined;
  const templates = () => (loading ??= options.loadTemplates());

  /** Rejects, before anything is sent, where the template or what it needs is missing. */
  async function mailOf(effect: string, intent: EmailIntent): Promise<Mail> {
    const { template, to, locale, data, replyTo } = intent;
    const rendered = (await templates()).render(template, { locale, data });
    const messageId = messageIdFor(effect, from);
    const headers = { "auto-submitted": "auto-generated" };
    return {
      effect,
      messageId,
      to,
      from,
      headers,
      ...rendered,
      ...(replyTo === undefined ? {} : { replyTo }),
    };
  }

  async function perform(effect: Effect, callLimits: CallLimits): Promise<AttemptResult> {
    let mail: Mail;
    try {
      mail = await mailOf(effect.id, readIntent(effect));
    } catch (error) {
      const message = error instanceof Error ? error.message : "the mail could not be made";
      return { is: "failed", fault: { class: "Template", message } };
    }
    return transport.send(mail, callLimits);
  }

  return {
    kind: "email",
    retry,
    limitMs: timeLimitMs,
    timeoutMs: timeLimitMs,
    concurrency: limits.concurrency ?? 5,
    destinations: [transport.name],
    limitsFor: () => limits,
    takesTurn: transport.takesTurn ?? false,
    keyValidMs: () => 0, // mail has no key that anyone would know again
    perform,
    auditOf(effect) {
      const { template, to, details } = readIntent(effect);
      return { ...details, template, to: maskMailbox(to) };
    },
    close: () => transport.close(),
    async ready() {
      await templates();
    },
    async draft(template, mail) {
      const { dedupeKey, after, onUncertain } = readOptions("email", mail);
      const { to, data = {}, locale = options.locale, replyTo, switchedOff = false, details = {} } = mail;
      if (typeof to !== "string" || !isMailbox(to)) throw wrong("email", "to must be one plain mailbox");
      if (replyTo !== undefined && !isMailbox(replyTo))
        throw wrong("email", "replyTo must be one plain mailbox");
      const intent = {
        template,
        to,
        locale,
        data,
        details,
        ...(replyTo === undefined ? {} : { replyTo }),
      };
      const text = toJson(intent);
      if (text === undefined)
        throw wrong("email", `data and details must be JSON of at most ${INTENT_BYTES_MAX} bytes`);
      // what cannot be made now could not be sent later; of one that is not to be sent it does not matter
      const kept = (JSON.parse(text) as EmailIntent).data;
      if (!switchedOff) (await templates()).render(template, { locale, data: kept });
      return {
        kind: "email",
        dedupeKey,
        target: addressOf(to),
        amount: null,
        currency: null,
        intent: text,
        destination: transport.name,
        onUncertain: onUncertain ?? "retry",
        maxAttempts: retry.maxAttempts,
        after,
        cancelled: switchedOff ? "switched off by the recipient" : null,
      };
    },
  };
}

/** By which mails to one person are found, however he writes himself. */
export function addressOf(mailbox: string): string {
  return mailbox.trim().toLowerCase();
}

const readIntent = ({ intent }: Effect): EmailIntent => JSON.parse(intent) as EmailIntent;

/** What PostgreSQL's JSON does not hold: NUL, and one half of a character that takes two units of UTF-16. */
const UNKEEPABLE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/i;

function toJson(intent: EmailIntent): string | undefined {
  try {
    const text = JSON.stringify(intent);
    return Buffer.byteLength(text) <= INTENT_BYTES_MAX && !UNKEEPABLE.test(text) ? text : undefined;
  } catch {
    return undefined;
  }
}
