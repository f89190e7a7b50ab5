// What a handler can say by throwing, and what follows from any throw.
import type { Failure, KeptError } from "../storage/settle-failed.ts";
import type { Policy } from "./policy.ts";

/** Shared by every copy of this module in the process: a bundler or a loader may well make two. */
const SAID = Symbol.for("ukemi.said");

/** It can never succeed: dead at once. */
export class Terminal extends Error {
  override readonly name = "Terminal";
  readonly [SAID] = "terminal";
}

/** It may succeed after the given time. */
export class RetryAfter extends Error {
  override readonly name = "RetryAfter";
  readonly [SAID] = "retry_after";
  readonly delayMs: number;
  constructor(delayMs: number, reason: string) {
    super(reason);
    this.delayMs = delayMs;
  }
}

/** Something that has to come first has not come yet. */
export class NotYet extends Error {
  override readonly name = "NotYet";
  readonly [SAID] = "not_yet";
  readonly withinMs: number;
  constructor(reason: string, withinMs: number) {
    super(reason);
    this.withinMs = withinMs;
  }
}

/** What a handler said by throwing; undefined where it only failed. */
function saidBy(thrown: unknown): Terminal | RetryAfter | NotYet | undefined {
  return thrown instanceof Error && SAID in thrown ? (thrown as Terminal | RetryAfter | NotYet) : undefined;
}

export function isTerminal(thrown: unknown): thrown is Terminal {
  return saidBy(thrown)?.[SAID] === "terminal";
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
  error: KeptError,
  job: { readonly attempt: number; readonly maxAttempts: number },
  policy: Policy,
): Failure {
  const said = saidBy(thrown);
  if (said?.[SAID] === "terminal") return { next: "die", death: "terminal", error };
  if (said?.[SAID] === "not_yet") return { next: "wait", withinMs: said.withinMs, error };
  const retry = job.attempt + 1;
  if (retry >= job.maxAttempts) return { next: "die", death: "exhausted", error };
  return {
    next: "retry",
    delayMs: said ? said.delayMs : policy.delayMs(retry),
    error,
  };
}
