// The kinds of effects that a process can plan and carry out, made of its settings and options.
import type { Settings } from "../options.ts";
import { OTHER, type KnownDestination } from "../storage/effect-backlog.ts";
import { CALLS } from "../storage/effects-call.ts";
import { NO_KEYS, type Keyring } from "../storage/keyring.ts";
import type { Kinds } from "./effects.ts";
import { wrong } from "./draft.ts";
import { createEmail, type EmailKind } from "./email/performer.ts";
import { smtp } from "./email/smtp.ts";
import { loadTemplates } from "./email/templates.ts";
import type { MailTransport } from "./email/transport.ts";
import { createHttp, type HttpOptions } from "./http/performer.ts";
import { createUsage, type UsageKind } from "./usage/performer.ts";

/** How mail is sent, where the settings do not say enough. */
export interface EmailOptions {
  /** @default SMTP at smtpUrl */
  readonly transport?: MailTransport;
}

export interface KindOptions {
  readonly email: EmailOptions | undefined;
  readonly http: HttpOptions | undefined;
  /** Has what seals intents; asked for only where there are keys. */
  readonly openStore: () => Promise<{ readonly keyring: Keyring }>;
}

/** Throws where what was given cannot work. */
export function createKinds(settings: Settings, { email, http, openStore }: KindOptions): Kinds {
  const mail = emailOf(settings, email);
  const usage = usageOf(settings);
  return {
    email: mail,
    http: createHttp({ ...http, allow: [...settings.httpAllow, ...(http?.allow ?? [])] }),
    usage,
    // without keys an intent in somebody's own transaction opens no store
    openKeyring:
      settings.bodyKeys.length === 0
        ? () => Promise.resolve(NO_KEYS)
        : async () => (await openStore()).keyring,
    areConfigured: mail !== undefined || usage !== undefined || http !== undefined,
  };
}

/** The destinations that may be told by their names: those of the settings. */
export function knownDestinations({ email, http, usage }: Kinds): readonly KnownDestination[] {
  const named = [email, http, usage].flatMap((performer) =>
    (performer?.destinations ?? []).map((destination) => ({ kind: performer!.kind, destination })),
  );
  // HTTP calls may go anywhere, and those whose answer somebody waits for are the application's own
  return [...named, { kind: "http", destination: OTHER }, { kind: "call", destination: CALLS }];
}

function emailOf(settings: Settings, options: EmailOptions | undefined): EmailKind | undefined {
  const { smtpUrl, mailFrom, mailLocale, mailTimeZone } = settings;
  const { mailConcurrency, mailGapMs, mailPerSecond, mailPerDay } = settings;
  if (mailFrom === undefined) {
    if (options?.transport) throw wrong("email", "there is no sender: set MAIL_FROM (mailFrom)");
    return undefined; // an application may have its own use for SMTP_URL
  }
  const transport = options?.transport ?? (smtpUrl && smtp({ url: smtpUrl, connections: mailConcurrency }));
  if (!transport) return undefined;
  return createEmail({
    transport,
    from: mailFrom,
    loadTemplates: () =>
      loadTemplates(settings.mailTemplates, { fallbackLocale: mailLocale, timeZone: mailTimeZone }),
    locale: mailLocale,
    tries: settings.mailTries,
    timeLimitMs: settings.mailTimeLimitMs,
    limits: {
      perSecond: mailPerSecond,
      gapMs: mailGapMs,
      perDay: mailPerDay,
      concurrency: mailConcurrency,
    },
  });
}

function usageOf(settings: Settings): UsageKind | undefined {
  const { apiMeterUrl: url, apiMeterToken: token, apiMeterTenant: tenant } = settings;
  if (url === undefined || token === undefined || tenant === undefined) return undefined;
  const { usageBatchSize: batchSize, usageRetriesMax: retriesMax } = settings;
  return createUsage({ url, token, tenant, batchSize, retriesMax });
}
