// What a configuration holds beside its options: sources, queues, handlers; and the words for what is wrong with them.
import type { Config } from "./config.ts";
import { UkemiError } from "./errors.ts";
import { faultsOf, givenAs, OPTION_NAMES, OPTIONS } from "./options.ts";
import { didYouMean } from "./suggest.ts";
import type { QueueOptions } from "./ukemi.ts";

type PartName = Exclude<keyof Config, keyof typeof OPTIONS>;

/** Says every fault of a part; none where it is well. */
type Check = (given: unknown) => readonly string[];

/** One check for each part, and for each option of a queue: the compiler asks for those that are missing. */
const PARTS: Readonly<Record<PartName, Check>> = {
  sources: checkSources,
  queues: checkQueues,
  email: (given) => requireObject("email", given),
  http: (given) => requireObject("http", given),
  onAlert: (given) => requireFunction("onAlert", given),
  logger: checkLogger,
  handlers: (given) => requireFunction("handlers", given),
};

const QUEUE_OPTIONS: Readonly<
  Record<keyof QueueOptions, (name: string, given: unknown) => readonly string[]>
> = {
  concurrency: (name, given) => faultsOf("concurrency", given).map((fault) => `${name} ${fault}`),
};

/** What is called on a logger; pino's and those made like it have them all. */
const LOGGER_METHODS = ["trace", "debug", "info", "warn", "error", "fatal", "isLevelEnabled"] as const;

const SOURCE_NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** The names that a configuration may hold. */
export const CONFIG_KEYS: readonly string[] = [...Object.keys(PARTS), ...OPTION_NAMES];

/** Every fault of a configuration but those of its options' values: one sentence each. */
export function partFaults(config: Readonly<Record<string, unknown>>): readonly string[] {
  const unknown = Object.keys(config)
    .filter((key) => !CONFIG_KEYS.includes(key))
    .map((key) => `there is no option named ${key}${suggestionFor(key)}`);
  const wrong = Object.entries(PARTS).flatMap(([name, check]) =>
    config[name] === undefined && name !== "sources" ? [] : check(config[name]),
  );
  return [...unknown, ...wrong];
}

/** Throws, naming every fault of sources, queues and the like, and every name that means nothing. */
export function requireParts(config: object): void {
  const faults = partFaults(config as Readonly<Record<string, unknown>>);
  if (faults.length > 0) throw new UkemiError("invalid_option", faults.map(sentence).join("\n"));
}

/** In a file an option goes by its own name, not by that of its variable or flag. */
function suggestionFor(key: string): string {
  const byVariable = OPTION_NAMES.find((name) => (OPTIONS[name] as { env?: string }).env === key);
  return byVariable === undefined ? didYouMean(key, CONFIG_KEYS) : `: did you mean ${byVariable}?`;
}

function requireObject(name: string, given: unknown): readonly string[] {
  return isRecord(given) ? [] : [`${name} must be an object`];
}

function checkSources(given: unknown): readonly string[] {
  if (!isRecord(given)) {
    const expected = "must be an object of sources, such as { stripe: stripe({ secrets: […] }) }";
    return [`sources ${expected}${givenAs(given)}.`];
  }
  return Object.entries(given).flatMap(([name, source]) => {
    const wrongName = SOURCE_NAME.test(name)
      ? []
      : [`the source name ${JSON.stringify(name)} must be 1 to 64 lower-case letters, digits, "-" or "_".`];
    return [...wrongName, ...checkSource(name, source)];
  });
}

function checkSource(name: string, given: unknown): readonly string[] {
  const how = "make it with stripe({ secrets: […] }), standardWebhooks({ … }), hmac({ … }) or sns({ … })";
  if (typeof given === "function")
    return [`sources.${name} is a function: call it, as in stripe({ secrets: […] }).`];
  if (!isRecord(given)) return [`sources.${name} is not a source: ${how}.`];
  const { kind, verify, identify, allowedAddresses } = given;
  const isSource = typeof kind === "string" && Array.isArray(allowedAddresses);
  const works = typeof verify === "function" && typeof identify === "function";
  return isSource && works ? [] : [`sources.${name} is not a source: ${how}.`];
}

function checkQueues(given: unknown): readonly string[] {
  if (!isRecord(given))
    return [`queues must be an object, such as { mail: { concurrency: 5 } }${givenAs(given)}.`];
  return Object.entries(given).flatMap(([queue, options]) => {
    if (!isRecord(options))
      return [`queues.${queue} must be an object, such as { concurrency: 5 }${givenAs(options)}.`];
    return Object.entries(options).flatMap(([name, value]) => {
      const check = Object.hasOwn(QUEUE_OPTIONS, name)
        ? QUEUE_OPTIONS[name as keyof QueueOptions]
        : undefined;
      if (!check)
        return [`queues.${queue} has no option named ${name}${didYouMean(name, Object.keys(QUEUE_OPTIONS))}`];
      return value === undefined ? [] : check(`queues.${queue}.${name}`, value);
    });
  });
}

function checkLogger(given: unknown): readonly string[] {
  const methods = (given ?? {}) as Record<string, unknown>;
  const missing = LOGGER_METHODS.filter((name) => typeof methods[name] !== "function");
  if (missing.length === 0) return [];
  return [`logger must be one of pino's, or have its methods: it lacks ${missing.join(", ")}.`];
}

function requireFunction(name: string, given: unknown): readonly string[] {
  return typeof given === "function" ? [] : [`${name} must be a function${givenAs(given)}.`];
}

function isRecord(given: unknown): given is Readonly<Record<string, unknown>> {
  return typeof given === "object" && given !== null && !Array.isArray(given);
}

function sentence(text: string): string {
  return text.replace(/^(?:there|the) /, (word) => word[0]!.toUpperCase() + word.slice(1));
}
