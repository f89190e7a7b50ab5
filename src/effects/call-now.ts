// A call whose answer the user waits for: intended and committed, made with its key, its result kept for whoever asks again.
import { sleep, steadyMs } from "../clock.ts";
import { crashPoint } from "../crash-point.ts";
import { UkemiError } from "../errors.ts";
import { beginCall, settleCall, type BegunCall, type CallEnd } from "../storage/effects-call.ts";
import type { Keyring } from "../storage/keyring.ts";
import { transaction, type Pool } from "../storage/postgres.ts";
import { readOptions, readTenant, wrong } from "./draft.ts";

export interface CallNowOptions {
  /** Keys of one tenant are not those of another. */
  readonly tenant?: string;
  /** After so many milliseconds the call is given up; whether it was heard is not known then. @default 30000 */
  readonly timeoutMs?: number;
  /** For how long the peer knows a key again. @default 86400000, as Stripe does */
  readonly keyValidMs?: number;
}

/** What the call is made with. */
export interface CallTools {
  /** The idempotency key to be sent to the peer: the same on every try. */
  readonly key: string;
  /** Fires when the time is over. */
  readonly signal: AbortSignal;
}

/** An error that says that the call never happened, and never will. */
type IsTerminal = (error: unknown) => boolean;

/** Makes the call, or tells what it came to before. */
export type CallNow = <T>(
  key: string,
  call: (tools: CallTools) => Promise<T>,
  options?: CallNowOptions,
) => Promise<T>;

const TIMEOUT_MS = 30_000;
const DAY_MS = 86_400_000;
const ASK_AGAIN_MS = 50;
const RESULT_BYTES_MAX = 256 * 1024;
/** The lease outlives the call by this much, so that its end can be written down. */
const SETTLE_MS = 5000;

/** Where calls are written down, and what seals their results. */
export interface CallStore {
  readonly pool: Pool;
  readonly keyring: Keyring;
}

export interface CallNowParts {
  readonly open: () => Promise<CallStore>;
  readonly isTerminal: IsTerminal;
  readonly onCalled: (kind: "call", outcome: CallEnd["state"]) => void;
  /** What may be kept of an error. */
  readonly keep: (error: unknown) => { readonly class: string; readonly message: string };
}

export function createCallNow({ open, isTerminal, onCalled, keep }: CallNowParts): CallNow {
  return async (key, call, { tenant, timeoutMs = TIMEOUT_MS, keyValidMs = DAY_MS } = {}) => {
    readOptions("callNow", { dedupe: key });
    if (!(timeoutMs >= 1 && timeoutMs <= 3_600_000))
      throw wrong("callNow", "timeoutMs must be from 1 to 3600000");
    if (!(keyValidMs >= 0)) throw wrong("callNow", "keyValidMs must be a number from 0");
    const owner = readTenant("callNow", tenant);
    const store = await open();
    const leaseMs = timeoutMs + SETTLE_MS;
    const begun = await begin(store, { tenant: owner, key, leaseMs, keyValidMs }, timeoutMs);
    if (begun.is === "done") return JSON.parse(begun.receipt);
    if (begun.is === "forgotten") {
      throw new UkemiError(
        "effect_content_removed",
        `The call was made before, as the effect ${begun.id}, and its result has been removed since.`,
      );
    }
    if (begun.is === "failed")
      throw new UkemiError("effect_failed", `The call failed for good: ${begun.reason}`);
    if (begun.is === "busy") throw new UkemiError("effect_in_progress");
    if (begun.is === "uncertain") throw new UkemiError("effect_uncertain");
    const { id, attempt } = begun;
    crashPoint("effect.begun");
    const asDone = (receipt: string) =>
      settle(store, { id, attempt, state: "done", receipt, errorClass: null, errorMessage: null });
    let receipt: string;
    try {
      const onLate = (result: unknown) => asDone(readResult(result));
      const make = (signal: AbortSignal) => call({ key: `ukemi_${id}`, signal });
      receipt = readResult(await withinTime(make, timeoutMs, onLate));
    } catch (error) {
      const { class: errorClass, message: errorMessage } = keep(error);
      const state = isTerminal(error) ? "failed" : "uncertain";
      onCalled("call", state);
      // the caller's own error is what it must hear of
      await settle(store, { id, attempt, state, receipt: null, errorClass, errorMessage }).catch(() => {});
      throw error;
    }
    crashPoint("effect.called");
    onCalled("call", "done");
    await asDone(receipt);
    return JSON.parse(receipt);
  };
}

/** Makes the call, and gives it up when its time is over, whether or not it listens. What it says later is kept all the same. */
async function withinTime<T>(
  call: (signal: AbortSignal) => Promise<T>,
  timeoutMs: number,
  onLate: (result: T) => Promise<void>,
): Promise<T> {
  const ending = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const time = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new DOMException(`The call was given up after ${timeoutMs} ms.`, "TimeoutError");
      reject(error);
      ending.abort(error);
    }, timeoutMs);
  });
  const called = (async () => call(ending.signal))();
  try {
    return await Promise.race([called, time]);
  } finally {
    clearTimeout(timer);
    if (ending.signal.aborted) called.then(onLate).catch(() => {});
  }
}

/** The result is known to nobody else: where the database is away for a moment, it is tried again while the lease lasts. */
async function settle({ pool, keyring }: CallStore, end: CallEnd): Promise<void> {
  const until = steadyMs() + SETTLE_MS;
  for (;;) {
    try {
      await settleCall(pool, end, keyring);
      return;
    } catch (error) {
      if (steadyMs() + ASK_AGAIN_MS > until) throw error;
      await sleep(ASK_AGAIN_MS);
    }
  }
}

/** Waits for whoever is making the same call at this moment. */
async function begin(
  { pool, keyring }: CallStore,
  intent: Parameters<typeof beginCall>[1],
  patienceMs: number,
): Promise<BegunCall> {
  const until = steadyMs() + patienceMs;
  for (;;) {
    const begun = await transaction(pool, (client) => beginCall(client, intent, keyring));
    if (begun.is !== "busy" || steadyMs() > until) return begun;
    await sleep(ASK_AGAIN_MS);
  }
}

function readResult(result: unknown): string {
  const text = JSON.stringify(result ?? null);
  if (Buffer.byteLength(text) <= RESULT_BYTES_MAX) return text;
  throw wrong(
    "callNow",
    `the result is larger than ${RESULT_BYTES_MAX} bytes: return only what is needed of it`,
  );
}
