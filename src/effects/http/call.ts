// Calls over HTTP: one call is one request, and nothing is tried again here.
import { Agent, type Dispatcher } from "undici";
import { VERSION } from "../../version.ts";
import type { AttemptResult, CallLimits } from "../attempt.ts";
import { classify } from "./classify.ts";
import { readUrl } from "./destination.ts";
import { exchange } from "./exchange.ts";
import { hide, wordsOf } from "./hidden.ts";
import { createGuard, type GuardOptions } from "./guard.ts";
import type { HttpIntent } from "./intent.ts";
import { classifySilence } from "./silence.ts";

/** A request, with the key that is the same on every try. */
export type KeyedHttpIntent = Pick<HttpIntent, "url" | "idempotent"> &
  Partial<HttpIntent> & { readonly idempotencyKey: string };

export interface HttpCallerOptions extends GuardOptions {
  /**
   * How many connections to one destination at a time, for calls that are idempotent and as many for the others; further
   * calls wait.
   *
   * @default 16
   */
  readonly connectionsMax?: number;
  /** How much of an answer is kept, in bytes; where there is more, the connection is dropped. @default 65536 */
  readonly answerBytesMax?: number;
}

/** Makes calls over HTTP. */
export interface HttpCaller {
  /** Never rejects. */
  call(intent: KeyedHttpIntent, limits: CallLimits): Promise<AttemptResult>;
  /** Lets the running calls end, each within its own limits. Later ones are not made. */
  close(): Promise<void>;
}

/** Short: the longer a connection lies idle, the more likely the peer closes it just when it is used. */
const IDLE_MS = 4000;

/** Nothing is connected until the first call. */
export function createHttpCaller(options: HttpCallerOptions = {}): HttpCaller {
  const { connectionsMax = 16, answerBytesMax = 64 * 1024 } = options;
  const shared = {
    connect: createGuard(options),
    connections: connectionsMax,
    headersTimeout: 0, // the exchange has a clock for all of it
    bodyTimeout: 0,
  };
  // one request at a time on a connection: with more, undici sends those again that stood behind a lost one
  const kept = new Agent({
    ...shared,
    pipelining: 1,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
  });
  // a kept connection may be closed by the peer while we write to it: uncertain, for what may not be sent again. So that
  // gets a new one each time, which is closed behind it
  const fresh = new Agent({ ...shared, pipelining: 0 });
  const running = new Set<Promise<AttemptResult>>();

  async function make(intent: KeyedHttpIntent, limits: CallLimits): Promise<AttemptResult> {
    const request = requestOf(intent);
    if (request === undefined) {
      const message = "Nothing was sent: the URL is not one that may be called.";
      return { is: "failed", fault: { class: "HTTP invalid URL", message } };
    }
    const ending = await exchange(intent.idempotent ? kept : fresh, request, { ...limits, answerBytesMax });
    const result = ending.is === "answered" ? classify(ending.answer, intent) : classifySilence(ending);
    return hide(result, wordsOf(intent));
  }

  return {
    call(intent, limits) {
      const result = make(intent, limits);
      running.add(result);
      return result.finally(() => running.delete(result));
    },
    async close() {
      await Promise.allSettled(running);
      await Promise.all([kept.destroy(), fresh.destroy()]);
    },
  };
}

function requestOf(intent: KeyedHttpIntent): Dispatcher.DispatchOptions | undefined {
  const {
    idempotencyHeader = "idempotency-key",
    idempotencyKey,
    method = "POST",
    headers = {},
    body,
  } = intent;
  const url = urlOf(intent.url);
  if (url === undefined) return undefined;
  // one key only, however the name of its header is written
  const others = Object.entries(headers).filter(
    ([name]) => name.toLowerCase() !== idempotencyHeader.toLowerCase(),
  );
  return {
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    method,
    headers: {
      "user-agent": `ukemi/${VERSION}`,
      ...Object.fromEntries(others),
      [idempotencyHeader]: idempotencyKey,
    },
    body: body ?? null,
  };
}

function urlOf(given: string): URL | undefined {
  try {
    return readUrl(given);
  } catch {
    return undefined;
  }
}
