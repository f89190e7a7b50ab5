// Every option once: what it means, its unit, its default, its flag and its environment variable.
import { faultsOfBodyKeys } from "./body-keys.ts";
import { UkemiError } from "./errors.ts";

/** What values an option takes, from text and from code. */
interface Kind<T> {
  readonly parse: (text: string) => unknown;
  readonly accepts: (value: unknown) => value is T;
  /** Completes the sentence "PORT …". */
  readonly expected: string;
  /** Every fault of a value that is not accepted, in place of `expected`. None of them quotes the value. */
  readonly faults?: (value: unknown) => readonly string[];
  /** All the values there are, where they can be listed. */
  readonly choices?: readonly string[];
}

/** How one option is declared. */
interface Declaration<T> extends Kind<T> {
  /** What it means, for help texts and the reference. Begins with a capital, ends with a full stop. */
  readonly text: string;
  readonly default: T;
  readonly env?: string;
  /** The flag of the command line, without dashes. */
  readonly flag?: string;
  /** What stands for the flag's value in help texts. @default "value" */
  readonly placeholder?: string;
  /** Never shown: not in logs, not by `doctor`. */
  readonly secret?: true;
}

function option<T>(kind: Kind<T>, declaration: Omit<Declaration<T>, keyof Kind<T>>): Declaration<T> {
  return { ...kind, ...declaration };
}

const TEXT: Kind<string> = {
  parse: (text) => text,
  accepts: (value): value is string => typeof value === "string" && value.trim() !== "",
  expected: "must be text that is not blank",
};

const URL_OF_POSTGRES: Kind<string> = {
  parse: (text) => text,
  accepts: (value): value is string => typeof value === "string" && /^postgres(?:ql)?:\/\//.test(value),
  expected: "must begin with postgres:// or postgresql://",
};

const URL_OF_WEB: Kind<string> = {
  parse: (text) => text,
  accepts: (value): value is string =>
    typeof value === "string" && /^https?:\/\//.test(value) && URL.canParse(value),
  expected: "must be a URL that begins with https:// or http://",
};

const URL_OF_SMTP: Kind<string> = {
  parse: (text) => text,
  accepts: (value): value is string =>
    typeof value === "string" && /^smtps?:\/\//.test(value) && URL.canParse(value),
  expected: "must be a URL that begins with smtp:// or smtps://",
};

const LIST: Kind<readonly string[]> = {
  parse: (text) => text.split(",").flatMap((item) => item.trim() || []),
  accepts: (value): value is string[] => Array.isArray(value) && value.every((item) => TEXT.accepts(item)),
  expected: "must be a list of texts",
};

const BODY_KEYS: Kind<readonly string[]> = {
  parse: LIST.parse,
  accepts: (value): value is string[] => faultsOfBodyKeys(value).length === 0,
  expected: "must be a list of texts of the form name:key",
  faults: faultsOfBodyKeys,
};

const FLAG: Kind<boolean> = {
  parse: (text) =>
    ({ true: true, 1: true, yes: true, on: true, false: false, 0: false, no: false, off: false })[
      text.toLowerCase()
    ],
  accepts: (value) => typeof value === "boolean",
  expected: "must be true or false",
};

const whole = (min: number, max: number): Kind<number> => ({
  parse: (text) => (text.trim() === "" ? undefined : Number(text)),
  accepts: (value): value is number =>
    Number.isInteger(value) && Number(value) >= min && Number(value) <= max,
  expected: `must be a whole number from ${min} to ${max}`,
});

const oneOf = <T extends string>(allowed: readonly T[]): Kind<T> => ({
  parse: (text) => text,
  accepts: (value): value is T => allowed.some((item) => item === value),
  expected: `must be one of ${allowed.join(", ")}`,
  choices: allowed,
});

/** An option that may be left out. */
const optional = <T>({ accepts, ...kind }: Kind<T>): Kind<T | undefined> => ({
  ...kind,
  accepts: (value): value is T | undefined => value === undefined || accepts(value),
});

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/** The declarations, in the order a reader meets them. */
export const OPTIONS = {
  database: option(optional(URL_OF_POSTGRES), {
    text: "Connection string of the PostgreSQL to use. Unset: an embedded PostgreSQL in the data folder.",
    default: undefined,
    env: "DATABASE_URL",
    flag: "database",
    secret: true,
  }),
  directUrl: option(optional(URL_OF_POSTGRES), {
    text: "Connection string that goes round a transaction pooler. Used for migrations, and for the sessions by which workers are known to live and told of work.",
    default: undefined,
    env: "UKEMI_DIRECT_URL",
    secret: true,
  }),
  data: option(TEXT, {
    text: "Folder for the embedded PostgreSQL and other local state.",
    default: ".ukemi",
    env: "UKEMI_DATA",
    flag: "data",
    placeholder: "folder",
  }),
  migrate: option(FLAG, {
    text: "Bring the schema up to date at start. The embedded PostgreSQL is always brought up to date.",
    default: false,
    env: "UKEMI_MIGRATE",
    flag: "migrate",
  }),
  host: option(TEXT, {
    text: "Address to listen on.",
    default: "127.0.0.1",
    env: "UKEMI_HOST",
    flag: "host",
  }),
  port: option(whole(0, 65_535), {
    text: "Port to listen on; 0 takes a free one.",
    default: 8787,
    env: "UKEMI_PORT",
    flag: "port",
  }),
  metricsPort: option(optional(whole(0, 65_535)), {
    text: "Port on which `ukemi work` answers /metrics, /healthz and /readyz; 0 takes a free one. Unset: none.",
    default: undefined,
    env: "UKEMI_METRICS_PORT",
    flag: "metrics-port",
  }),
  adminToken: option(optional(TEXT), {
    text: "Bearer token for /api/v1, and for /metrics when not asked from this machine. Needed to listen beyond loopback.",
    default: undefined,
    env: "UKEMI_ADMIN_TOKEN",
    secret: true,
  }),
  stripeSecrets: option(LIST, {
    text: "Signing secrets of the Stripe endpoint, separated by commas while one is being rolled.",
    default: [],
    env: "STRIPE_WEBHOOK_SECRET",
    secret: true,
  }),
  trustedProxies: option(LIST, {
    text: "Addresses or ranges of reverse proxies whose X-Forwarded-For is believed, separated by commas.",
    default: [],
    env: "UKEMI_TRUSTED_PROXIES",
    flag: "trusted-proxies",
  }),
  bodyKeys: option(BODY_KEYS, {
    text: "Master keys under which bodies and their headers are encrypted at rest: name:key, the key being 32 bytes in base64, separated by commas. The first is used for new keys, all of them open; `plain` in the first place stores new bodies as they come. Unset: bodies are stored as they come.",
    default: [],
    env: "UKEMI_BODY_KEYS",
    secret: true,
  }),
  bodyBytesMax: option(whole(1, 64 * 1024 * 1024), {
    text: "Largest body of a webhook, in bytes; more is answered with 413.",
    default: 1024 * 1024,
    env: "UKEMI_BODY_BYTES_MAX",
  }),
  commitDeadlineMs: option(whole(100, 60_000), {
    text: "An event that is not committed after this many milliseconds is answered with 503.",
    default: 4000,
    env: "UKEMI_COMMIT_DEADLINE_MS",
  }),
  lanes: option(whole(1, 16), {
    text: "How many commits of received events may be under way at once, each on its own connection.",
    default: 2,
    env: "UKEMI_LANES",
  }),
  batchRowsMax: option(whole(1, 10_000), {
    text: "How many events one commit takes at the most.",
    default: 256,
    env: "UKEMI_BATCH_ROWS_MAX",
  }),
  waitingRowsMax: option(whole(1, 1_000_000), {
    text: "How many verified events may wait for a commit before new ones are answered with 503.",
    default: 10_000,
    env: "UKEMI_WAITING_ROWS_MAX",
  }),
  bodiesBytesMax: option(whole(1, 4 * 1024 ** 3), {
    text: "How many bytes of bodies may be in memory at once, being read or waiting for a commit, before new ones are answered with 503.",
    default: 64 * 1024 * 1024,
    env: "UKEMI_BODIES_BYTES_MAX",
  }),
  refusedPerMinute: option(whole(1, 1_000_000), {
    text: "How many refused requests a minute one address may cause before it is answered with 429.",
    default: 60,
    env: "UKEMI_REFUSED_PER_MINUTE",
  }),
  rejectionRowsMax: option(whole(0, 10_000_000), {
    text: "How many refused requests the quarantine keeps; the oldest go first.",
    default: 10_000,
    env: "UKEMI_REJECTION_ROWS_MAX",
  }),
  bodyDays: option(whole(0, 36_500), {
    text: "Days for which the raw bodies and headers of events are kept. They go by whole months, so up to a month later; those of events with unfinished or dead jobs stay. The events themselves stay, so that a duplicate is still known. 0 keeps bodies for ever.",
    default: 90,
    env: "UKEMI_BODY_DAYS",
    flag: "body-days",
  }),
  attemptDays: option(whole(0, 36_500), {
    text: "Days for which the attempts of finished jobs, and the calls of ended effects, are kept; those of unfinished and dead jobs stay. 0 keeps them as long as their jobs, and calls as long as what their effects held.",
    default: 30,
    env: "UKEMI_ATTEMPT_DAYS",
    flag: "attempt-days",
  }),
  jobDays: option(whole(0, 36_500), {
    text: "Days for which finished jobs (done or cancelled) are kept after their end, with their attempts, payloads and dedupe keys. Unfinished and dead jobs stay, and so do events, refs, outcomes and the audit. 0 keeps jobs for ever.",
    default: 30,
    env: "UKEMI_JOB_DAYS",
    flag: "job-days",
  }),
  effectDays: option(whole(0, 36_500), {
    text: "Days for which what an effect held (what was to be sent, what the peer gave for it, every call) is kept after its end. The effect itself stays for ever with its dedupe key, so that it is never done a second time; what is unfinished, uncertain or held, or can be replayed, stays whole. 0 keeps everything for ever.",
    default: 90,
    env: "UKEMI_EFFECT_DAYS",
    flag: "effect-days",
  }),
  concurrency: option(whole(1, 1000), {
    text: "How many jobs of a queue may run at once in one process, where the queue does not say otherwise.",
    default: 10,
    env: "UKEMI_CONCURRENCY",
    flag: "concurrency",
  }),
  handlerConnectionsMax: option(optional(whole(1, 10_000)), {
    text: "How many connections the transactions of handlers may take in one process. Unset: as many as jobs may run at once.",
    default: undefined,
    env: "UKEMI_HANDLER_CONNECTIONS_MAX",
  }),
  timeLimitMs: option(whole(1, 86_400_000), {
    text: "Milliseconds after which a handler is stopped and its try counts as failed, where it does not say otherwise.",
    default: 30_000,
    env: "UKEMI_TIME_LIMIT_MS",
  }),
  leaseMs: option(whole(600, 3_600_000), {
    text: "Milliseconds for which a worker holds a job without being heard of. Kept alive while it lives; what a killed process held is found much sooner.",
    default: 30_000,
    env: "UKEMI_LEASE_MS",
  }),
  pollMs: option(whole(10, 60_000), {
    text: "Milliseconds after which a worker looks for jobs although nobody told it of any.",
    default: 1000,
    env: "UKEMI_POLL_MS",
  }),
  headTimeoutMs: option(whole(100, 600_000), {
    text: "Milliseconds within which the head of a request must have arrived.",
    default: 10_000,
    env: "UKEMI_HEAD_TIMEOUT_MS",
  }),
  requestTimeoutMs: option(whole(100, 600_000), {
    text: "Milliseconds within which a whole request must have arrived.",
    default: 15_000,
    env: "UKEMI_REQUEST_TIMEOUT_MS",
  }),
  connectionsMax: option(whole(1, 1_000_000), {
    text: "How many connections may be open at once; more are closed at the door.",
    default: 10_000,
    env: "UKEMI_CONNECTIONS_MAX",
  }),
  drainTimeoutMs: option(whole(0, 600_000), {
    text: "Milliseconds that a stop waits for requests and handlers under way.",
    default: 10_000,
    env: "UKEMI_DRAIN_TIMEOUT_MS",
  }),
  allowUnsafeDurability: option(FLAG, {
    text: "Accept a PostgreSQL that runs with fsync = off. Acknowledged events may then be lost.",
    default: false,
    env: "UKEMI_ALLOW_UNSAFE_DURABILITY",
  }),
  apiMeterUrl: option(optional(URL_OF_WEB), {
    text: "Address of the API_Meter to which use is exported, without /v1/usage.",
    default: undefined,
    env: "API_METER_URL",
  }),
  apiMeterToken: option(optional(TEXT), {
    text: "Bearer token for the API_Meter.",
    default: undefined,
    env: "API_METER_TOKEN",
    secret: true,
  }),
  apiMeterTenant: option(optional(TEXT), {
    text: "The tenant for which use is exported, as the API_Meter knows it.",
    default: undefined,
    env: "API_METER_TENANT_ID",
  }),
  usageBatchSize: option(whole(100, 500), {
    text: "How many records of use one call to the API_Meter takes.",
    default: 500,
    env: "BATCH_SIZE",
  }),
  usageRetriesMax: option(whole(0, 10), {
    text: "How often a call to the API_Meter is tried again before its batch is saved for the next run.",
    default: 3,
    env: "MAX_RETRIES",
  }),
  smtpUrl: option(optional(URL_OF_SMTP), {
    text: "SMTP server that takes mail: smtp://user:password@host:587 (STARTTLS) or smtps://…:465.",
    default: undefined,
    env: "SMTP_URL",
    secret: true,
  }),
  mailFrom: option(optional(TEXT), {
    text: "Sender of mail: an address, or Name <address>.",
    default: undefined,
    env: "MAIL_FROM",
  }),
  mailTemplates: option(TEXT, {
    text: "Folder with the templates of mail.",
    default: "mails",
    env: "UKEMI_MAIL_TEMPLATES",
    placeholder: "folder",
  }),
  mailLocale: option(TEXT, {
    text: "Language of mail that does not say otherwise, and of templates that lack the one asked for.",
    default: "en",
    env: "UKEMI_MAIL_LOCALE",
  }),
  mailTimeZone: option(TEXT, {
    text: "Time zone in which mail shows dates and times that name none, such as Asia/Tokyo.",
    default: "UTC",
    env: "UKEMI_MAIL_TIME_ZONE",
  }),
  mailTries: option(whole(1, 20), {
    text: "How often a mail is tried in all; 2, 4 and 8 seconds lie between the tries, then 10.",
    default: 3,
    env: "UKEMI_MAIL_TRIES",
  }),
  mailTimeLimitMs: option(whole(1000, 3_600_000), {
    text: "Milliseconds that the tries of one mail and the waits between them may take in all. Waiting for a rate, a quota or a pause does not count.",
    default: 30_000,
    env: "UKEMI_MAIL_TIME_LIMIT_MS",
  }),
  mailConcurrency: option(whole(1, 100), {
    text: "How many mails may be on their way at once, in all processes together.",
    default: 5,
    env: "UKEMI_MAIL_CONCURRENCY",
  }),
  mailGapMs: option(whole(0, 60_000), {
    text: "Milliseconds between the beginnings of two mails, at the least.",
    default: 100,
    env: "UKEMI_MAIL_GAP_MS",
  }),
  mailPerSecond: option(whole(1, 10_000), {
    text: "How many mails a second the provider takes.",
    default: 14,
    env: "UKEMI_MAIL_PER_SECOND",
  }),
  mailPerDay: option(whole(1, 100_000_000), {
    text: "How many mails the provider takes in 24 hours.",
    default: 50_000,
    env: "UKEMI_MAIL_PER_DAY",
  }),
  httpAllow: option(LIST, {
    text: "Origins or hosts that effects.http may call although they are private or speak no TLS, separated by commas.",
    default: [],
    env: "UKEMI_HTTP_ALLOW",
  }),
  logLevel: option(oneOf(LOG_LEVELS), {
    text: "Least level that is logged: trace, debug, info, warn, error, fatal or silent.",
    default: "info",
    env: "LOG_LEVEL",
    flag: "log-level",
  }),
} as const;

export type OptionName = keyof typeof OPTIONS;

/** The value of every option. */
export type Settings = {
  readonly [Name in OptionName]: (typeof OPTIONS)[Name]["default"] extends infer Default
    ? Widen<Default>
    : never;
};

type Widen<T> = T extends boolean ? boolean : T extends number ? number : T;

/** Where a value came from. */
export type Origin = "flag" | "env" | "config" | "default";

/** The names in order. */
export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[];

/** Every option at its default, frozen. */
export const DEFAULTS: Settings = Object.freeze(
  Object.fromEntries(OPTION_NAMES.map((name) => [name, OPTIONS[name].default])),
) as unknown as Settings;

/** What was read, and every fault of it; a wrong value is replaced by the default. */
export interface ExaminedSettings {
  readonly settings: Settings;
  readonly origins: Readonly<Record<OptionName, Origin>>;
  /** One sentence each, with the name that the person wrote. */
  readonly faults: readonly string[];
}

/** Where settings are read from. Flags win over the environment, and that over the configuration file. */
export interface Given {
  readonly flags?: Readonly<Record<string, string | boolean | undefined>>;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly config?: Readonly<Record<string, unknown>>;
  /** The configuration file, as the person names it. */
  readonly file?: string | undefined;
}

/** Reads the settings, and goes on after a fault. A blank variable is as good as none. */
export function examineSettings({ flags = {}, env = {}, config = {}, file }: Given): ExaminedSettings {
  const faults: string[] = [];
  const values: Record<string, unknown> = {};
  const origins: Record<string, Origin> = {};
  for (const name of OPTION_NAMES) {
    const declaration: Declaration<unknown> = OPTIONS[name];
    const flag = flags[name] === undefined ? undefined : String(flags[name]);
    const variable = declaration.env === undefined ? undefined : env[declaration.env] || undefined;
    const configured = config[name] === "" ? undefined : config[name];
    const origin = flag !== undefined ? "flag" : variable !== undefined ? "env" : "config";
    const text = flag ?? variable;
    const value = text === undefined ? (configured ?? declaration.default) : declaration.parse(text);
    const wrong = faultsOf(name, value, text);
    const given = text !== undefined || configured !== undefined;
    origins[name] = given && wrong.length === 0 ? origin : "default";
    values[name] = wrong.length === 0 ? value : declaration.default;
    const inFile = file === undefined ? name : `${file}: ${name}`;
    const label = { flag: `--${declaration.flag}`, env: declaration.env, config: inFile }[origin];
    faults.push(...wrong.map((fault) => `${label} ${fault}`));
  }
  return { settings: values as Settings, origins: origins as Record<OptionName, Origin>, faults };
}

/** Reads the settings; throws, naming every fault at once, one line each. */
export function readSettings(given: Given): Omit<ExaminedSettings, "faults"> {
  const { faults, ...read } = examineSettings(given);
  if (faults.length > 0) throw new UkemiError("invalid_option", faults.join("\n"));
  return read;
}

/** Throws, naming every fault, unless each value is one that its option takes. */
export function checkSettings(settings: Settings): void {
  const faults = OPTION_NAMES.flatMap((name) => {
    return faultsOf(name, settings[name]).map((fault) => `${name} ${fault}`);
  });
  if (faults.length > 0) throw new UkemiError("invalid_option", faults.join("\n"));
}

/** Completes the sentence "PORT …", once for each fault of a value that the option does not take. `text` is what it was read from. */
export function faultsOf(name: OptionName, value: unknown, text?: string): readonly string[] {
  const declaration: Declaration<unknown> = OPTIONS[name];
  if (declaration.accepts(value)) return [];
  if (declaration.faults) return declaration.faults(value).map((fault) => `${fault}.`);
  const given = text ?? value;
  // what may be a secret is not quoted
  return [`${declaration.expected}${declaration.secret && typeof given === "string" ? "" : givenAs(given)}.`];
}

/** Longer than this a text may be a secret that was put in the wrong place. */
const QUOTED_MAX = 16;

/** ", not …": what was given instead. */
export function givenAs(value: unknown): string {
  if (value === undefined) return "";
  if (typeof value === "string") return value.length > QUOTED_MAX ? "" : `, not ${JSON.stringify(value)}`;
  if (typeof value === "function") return ", not a function";
  if (Array.isArray(value)) return ", not a list";
  return typeof value === "object" && value !== null ? ", not an object" : `, not ${JSON.stringify(value)}`;
}

/** How a value that is not set is shown. */
export const UNSET = "(not set)";

/** A value as it may be shown: of a connection string all but the password, of other secrets only that they are set. */
export function showOption(name: OptionName, value: unknown): string {
  const declaration: Declaration<unknown> = OPTIONS[name];
  const unset = value === undefined || (Array.isArray(value) && value.length === 0);
  if (unset) return UNSET;
  if (Array.isArray(value)) return declaration.secret ? `(${value.length} set, hidden)` : value.join(",");
  if (declaration.secret) return URL_OF_POSTGRES.accepts(value) ? withoutPassword(value) : "(set, hidden)";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Of the parameters only the names are shown: a password may be among them. */
function withoutPassword(address: string): string {
  try {
    const { protocol, username, password, host, pathname, searchParams } = new URL(address);
    const user = username === "" ? "" : `${username}${password === "" ? "" : ":***"}@`;
    const parameters = [...searchParams.keys()].map((name) => `${name}=…`).join("&");
    return `${protocol}//${user}${host}${pathname}${parameters && `?${parameters}`}`;
  } catch {
    return "(set, hidden)"; // what cannot be read cannot be hidden in part
  }
}
