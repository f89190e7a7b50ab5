// Retry policies: how often a failed job is tried again, and how long it waits before each retry.
import { UkemiError } from "../errors.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A policy of one's own. */
export interface CustomRetry {
  /** How often a failed job is tried again before it is a dead letter. */
  readonly retries: number;
  /**
   * The wait before each retry in milliseconds; the last one repeats. Or a function of the retry, which begins at 1.
   * @default 1 s, doubled each time, to a day at the most
   */
  readonly delaysMs?: readonly number[] | ((retry: number) => number);
  /**
   * By which part a wait is made longer or shorter at random, so that jobs which failed together do not return together.
   * @default 0
   */
  readonly jitter?: number;
}

/**
 * - `quick`: 3 retries after 1 s, 2 s and 4 s.
 * - `patient`: 12 tries over 3 days.
 * - `qstash`: 3 retries, e^(2.5 n) seconds before the nth.
 */
export type Retry = "quick" | "patient" | "qstash" | CustomRetry;

export interface Policy {
  readonly name: string;
  readonly maxAttempts: number;
  /** The wait before the nth retry, counted from 1. */
  delayMs(retry: number): number;
}

const PATIENT_MS = [
  10 * SECOND,
  MINUTE,
  5 * MINUTE,
  15 * MINUTE,
  HOUR,
  2 * HOUR,
  4 * HOUR,
  8 * HOUR,
  12 * HOUR,
  20 * HOUR,
  DAY,
];

const PRESETS: Readonly<Record<Exclude<Retry, CustomRetry>, CustomRetry>> = {
  quick: { retries: 3, delaysMs: [SECOND, 2 * SECOND, 4 * SECOND] },
  patient: { retries: PATIENT_MS.length, delaysMs: PATIENT_MS, jitter: 0.1 },
  qstash: { retries: 3, delaysMs: (retry) => Math.min(DAY, Math.exp(2.5 * retry) * SECOND) },
};

const RETRIES_MAX = 1000;

const doubling = (retry: number) => Math.min(DAY, SECOND * 2 ** (retry - 1));

/** Longer than this nobody means. */
const WAIT_MS_MAX = 365 * DAY;

/** Makes a policy ready, or throws an error that says what is wrong with it. `random` is for tests. */
export function readPolicy(retry: Retry, random: () => number = Math.random): Policy {
  const preset = typeof retry === "string" ? PRESETS[retry] : retry;
  if (!preset) {
    throw new UkemiError(
      "invalid_option",
      `There is no retry policy named ${JSON.stringify(retry)}: use quick, patient, qstash, or { retries, delaysMs }.`,
    );
  }
  const { retries, delaysMs = doubling, jitter = 0 } = preset;
  if (!Number.isInteger(retries) || retries < 0 || retries > RETRIES_MAX) {
    throw new UkemiError("invalid_option", `retry.retries must be a whole number from 0 to ${RETRIES_MAX}.`);
  }
  if (
    typeof delaysMs !== "function" &&
    !(retries === 0 || (delaysMs.every((ms) => ms >= 0) && delaysMs.length > 0))
  ) {
    throw new UkemiError("invalid_option", "retry.delaysMs must hold at least one wait, and none below 0.");
  }
  if (!(jitter >= 0 && jitter <= 1)) {
    throw new UkemiError("invalid_option", "retry.jitter must be from 0 to 1.");
  }
  return {
    name: typeof retry === "string" ? retry : "custom",
    maxAttempts: retries + 1,
    delayMs(nth) {
      const wait = Math.min(Math.max(0, waitFor(delaysMs, nth)), WAIT_MS_MAX);
      return Math.round(wait * (1 + jitter * (2 * random() - 1)));
    },
  };
}

/** A function that throws, or returns no number, must not keep the job from being tried again. */
function waitFor(delaysMs: NonNullable<CustomRetry["delaysMs"]>, nth: number): number {
  try {
    const wait = typeof delaysMs === "function" ? delaysMs(nth) : (delaysMs[nth - 1] ?? delaysMs.at(-1));
    return typeof wait === "number" && !Number.isNaN(wait) ? wait : MINUTE;
  } catch {
    return MINUTE;
  }
}
