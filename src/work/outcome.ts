// What a handler can say by throwing, and what follows from any throw.
import type { Failure, KeptError } from "../storage/settle.ts";
import { keepError } from "./kept-error.ts";
import type { Policy } from "./policy.ts";

/** It can never succeed: dead at once. */
export class Terminal extends Error {
  override readonly name = "Terminal";
}

/** It may succeed after the given time. */
export class RetryAfter extends Error {
  override readonly name = "RetryAfter";
  readonly delayMs: number;
  constructor(delayMs: number, reason: string) {
    super(reason);
    this.delayMs = delayMs;
  }
}

/** Something that has to come first has not come yet. */
export class NotYet extends Error {
  override readonly name = "NotYet";
  readonly withinMs: number;
  constructor(reason: string, withinMs: number) {
    super(reason);
    this.withinMs = withinMs;
  }
}

/** The handler did not end in time. */
export class TimeLimit extends Error {
  override readonly name = "TimeLimit";
}

const HOUR_MS = 3_600_000;
const DELAY_MS_MAX = 365 * 24 * HOUR_MS;

/** `throw terminal("…")`: no retry can help; the job is a dead letter at once. */
export function terminal(reason: string, options?: ErrorOptions): Terminal {
  return new Terminal(reason, options);
}

/** `throw retryAfter(ms)`: try again after this time instead of what the policy says. It counts as an attempt. */
export function retryAfter(
  delayMs: number,
  reason = `asked to be tried again after ${delayMs} ms`,
): RetryAfter {
  return new RetryAfter(bounded(delayMs), reason);
}

/**
 * `throw notYet("the payment is not stored yet", { within })`: wait for something that must come first, without burning
 * attempts. After `within` milliseconds (an hour by default) the job is a dead letter.
 */
export function notYet(reason: string, { within = HOUR_MS }: { readonly within?: number } = {}): NotYet {
  return new NotYet(reason, bounded(within));
}

/** A number that is none, or beyond any date, must not make a handler's own throw fail. */
function bounded(ms: number): number {
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), DELAY_MS_MAX) : 0;
}

/** What follows from what a handler threw, for a job that had so many attempts before. */
export function judge(
  thrown: unknown,
  job: { readonly attempt: number; readonly maxAttempts: number },
  policy: Policy,
): Failure {
  const error: KeptError = keepError(thrown);
  if (thrown instanceof Terminal) return { then: "die", death: "terminal", error };
  if (thrown instanceof NotYet) return { then: "wait", withinMs: thrown.withinMs, error };
  const retry = job.attempt + 1;
  if (retry >= job.maxAttempts) return { then: "die", death: "exhausted", error };
  return {
    then: "retry",
    delayMs: thrown instanceof RetryAfter ? thrown.delayMs : policy.delayMs(retry),
    error,
  };
}
