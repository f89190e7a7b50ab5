// What is special about calls to one destination, checked at the start: what is wrong there would be wrong on every call.
import type { DestinationLimits } from "../../storage/destinations.ts";
import { wrong } from "../draft.ts";
import { destinationOf } from "./destination.ts";
import { readHeaders } from "./headers.ts";

/** What is special about calls to one destination. */
export interface DestinationOptions extends DestinationLimits {
  /** Sent with every call, and not kept in the ledger: tokens belong here. They win over those of an effect. */
  readonly headers?: Readonly<Record<string, string>>;
  /** For how long the peer knows an idempotency key again. @default 86400000, a day */
  readonly keyValidMs?: number;
}

const DAY_MS = 86_400_000;

/** What each number must be, in words and as a test. */
const NUMBERS = {
  perSecond: ["a number above 0, at most 10000", (value: number) => value > 0 && value <= 10_000],
  gapMs: ["a number from 0 to 86400000", (value: number) => value >= 0 && value <= DAY_MS],
  perDay: ["a whole number above 0", (value: number) => Number.isSafeInteger(value) && value > 0],
  concurrency: ["a whole number above 0", (value: number) => Number.isSafeInteger(value) && value > 0],
  keyValidMs: ["a number from 0", (value: number) => value >= 0],
} as const;

/** Reads them by destination; throws invalid_option where one cannot work. Quotes no header: it may be secret. */
export function readDestinations(
  given: Readonly<Record<string, DestinationOptions>> = {},
): ReadonlyMap<string, DestinationOptions> {
  return new Map(Object.entries(given).map(([url, options]) => [destinationOf(url), read(url, options)]));
}

function read(url: string, options: DestinationOptions): DestinationOptions {
  for (const [name, [words, isRight]] of Object.entries(NUMBERS)) {
    const value: unknown = options[name as keyof typeof NUMBERS];
    if (value !== undefined && !(typeof value === "number" && isRight(value)))
      throw wrong("http", `destinations: ${name} of ${destinationOf(url)} must be ${words}`);
  }
  if (options.headers === undefined) return options;
  // by lower-case names they take the place of an effect's own, and do not come beside them
  return { ...options, headers: readHeaders(options.headers, "idempotency-key") };
}
