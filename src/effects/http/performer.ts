// Carrying out effects of kind http: one request each, with the same key on every try.
import { createHash } from "node:crypto";
import type { Effect } from "../../storage/effects.ts";
import { readOptions, wrong, type Draft, type EffectOptions } from "../draft.ts";
import type { Performer } from "../performer.ts";
import { createHttpCaller } from "./call.ts";
import { destinationOf } from "./destination.ts";
import { readDestinations, type DestinationOptions } from "./destination-options.ts";
import { readHttpIntent, type HttpIntent, type HttpRequest } from "./intent.ts";

/** An HTTP call that is intended. */
export interface HttpGiven extends HttpRequest, EffectOptions {
  /** Where money moves: how much, in the smallest unit. The same key never stands for another amount. */
  readonly amount?: number;
  /** ISO 4217, such as `jpy`. */
  readonly currency?: string;
}

/** How HTTP calls are made. */
export interface HttpOptions {
  /** Origins or hosts that may be called although they are private, or speak no TLS. */
  readonly allow?: readonly string[];
  /** By origin, such as `https://api.example.com`. */
  readonly destinations?: Readonly<Record<string, DestinationOptions>>;
  /** How often a call is tried in all. @default 6 */
  readonly tries?: number;
  /** After so many milliseconds a call is given up. @default 30000 */
  readonly timeoutMs?: number;
  /** How many calls one process makes at once. @default 10 */
  readonly concurrency?: number;
}

export interface HttpKind extends Performer {
  /** Checks a call, and makes it ready to be planned. */
  draft(call: HttpGiven): Draft;
}

const DAY_MS = 86_400_000;
const FIRST_DELAY_MS = 1000;
const DELAY_MS_MAX = 600_000;

export function createHttp(options: HttpOptions = {}): HttpKind {
  const { allow = [], tries = 6, timeoutMs = 30_000, concurrency = 10 } = options;
  const known = readDestinations(options.destinations);
  if (!Number.isInteger(tries) || tries < 1 || tries > 100)
    throw wrong("http", "tries must be from 1 to 100");
  if (!(timeoutMs >= 1 && timeoutMs <= 3_600_000)) throw wrong("http", "timeoutMs must be from 1 to 3600000");
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 1000)
    throw wrong("http", "concurrency must be from 1 to 1000");
  const caller = createHttpCaller({ allowedDestinations: allow, connectionsMax: concurrency });
  const retry = {
    maxAttempts: tries,
    // between half and all of it: those that failed together do not return together
    delayMs: (nth: number) =>
      Math.round(Math.min(DELAY_MS_MAX, FIRST_DELAY_MS * 2 ** (nth - 1)) * (0.5 + Math.random() / 2)),
  };

  return {
    kind: "http",
    retry,
    limitMs: 7 * DAY_MS,
    timeoutMs,
    concurrency,
    destinations: [...known.keys()],
    limitsFor(destination) {
      const { perSecond, gapMs, perDay, concurrency: atOnce } = known.get(destination) ?? {};
      return {
        ...(perSecond === undefined ? {} : { perSecond }),
        ...(gapMs === undefined ? {} : { gapMs }),
        ...(perDay === undefined ? {} : { perDay }),
        ...(atOnce === undefined ? {} : { concurrency: atOnce }),
      };
    },
    keyValidMs: (effect) =>
      readIntent(effect).idempotent ? (known.get(effect.destination)?.keyValidMs ?? DAY_MS) : 0,
    async perform(effect, limits) {
      const intent = readIntent(effect);
      const ours = known.get(effect.destination)?.headers;
      const headers = { ...intent.headers, ...ours };
      const result = await caller.call({ ...intent, headers, idempotencyKey: effect.id }, limits);
      // credentials that this effect brought itself say nothing about those of others
      return result.is === "blocked" && !ours ? { is: "failed", fault: result.fault } : result;
    },
    auditOf: (effect) => ({ destination: effect.destination, method: readIntent(effect).method }),
    close: () => caller.close(),
    draft(call) {
      const intent = readHttpIntent(call);
      const { dedupeKey, after, onUncertain } = readOptions("http", call);
      return {
        kind: "http",
        dedupeKey,
        target: targetOf(intent),
        ...readMoney(call),
        intent: JSON.stringify(intent),
        destination: destinationOf(intent.url),
        onUncertain: onUncertain ?? "hold",
        maxAttempts: retry.maxAttempts,
        after,
        cancelled: null,
      };
    },
  };
}

const readIntent = ({ intent }: Effect): HttpIntent => JSON.parse(intent) as HttpIntent;

const TARGET_MAX = 1000;

/** Of what is asked only a mark: a query may carry a secret, and targets are shown. So too of what is too long for a list. */
function targetOf({ method, url }: HttpIntent): string {
  const { origin, pathname, search } = new URL(url);
  const target = `${method} ${origin}${pathname}${search === "" ? "" : `?${markOf(search)}`}`;
  return target.length <= TARGET_MAX ? target : `${target.slice(0, TARGET_MAX)}…${markOf(target)}`;
}

const markOf = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 12);

function readMoney({ amount, currency }: HttpGiven): Pick<Draft, "amount" | "currency"> {
  if (amount === undefined && currency === undefined) return { amount: null, currency: null };
  if (!Number.isSafeInteger(amount))
    throw wrong("http", "amount must be a whole number of the currency's smallest unit");
  if (typeof currency !== "string" || !/^[a-z]{3}$/i.test(currency)) {
    throw wrong("http", "currency must be a code of three letters, such as jpy");
  }
  return { amount: amount!, currency: currency.toLowerCase() };
}
