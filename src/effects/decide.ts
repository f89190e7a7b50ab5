// What follows from a call: arithmetic only, no store and no clock.
import type { AttemptResult, Fault } from "./attempt.ts";

/** What is known when a call has ended. */
export interface Situation {
  /** Tries of the job that ended before this one, and how many there may be. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** How many calls ended before this one without anybody knowing how. */
  readonly uncertainties: number;
  readonly onUncertain: "retry" | "hold";
  /** How long calls and the waits between them took, this call included, and how long they may in all. */
  readonly spentMs: number;
  readonly limitMs: number;
  /** How long ago the first call was begun, and for how long the peer knows the key again. */
  readonly ageMs: number;
  readonly keyValidMs: number;
  /** The wait before the nth retry. */
  delayMs(retry: number): number;
}

/** What becomes of the effect, and of the job that carries it out. */
export type Decision =
  | {
      readonly state: "done";
      readonly receipt: Readonly<Record<string, unknown>>;
      readonly remark: string | undefined;
    }
  /** Tried again after so long; it counts as a try. */
  | {
      readonly state: "planned" | "uncertain";
      readonly next: "retry";
      readonly delayMs: number;
      readonly fault: Fault;
    }
  /** Says nothing against the effect: it waits, and no try is counted. */
  | {
      readonly state: "planned" | "uncertain";
      readonly next: "wait";
      readonly delayMs: number;
      readonly fault: Fault;
    }
  | { readonly state: "failed"; readonly death: "terminal" | "exhausted"; readonly fault: Fault }
  /** A person must find out whether it happened. */
  | { readonly state: "held"; readonly fault: Fault };

/** Where the destination is closed, whoever asks next is told for how long. */
const BLOCKED_MS = 1000;

/** Says what follows. */
export function decide(result: AttemptResult, situation: Situation): Decision {
  switch (result.is) {
    case "done":
      return { state: "done", receipt: result.receipt, remark: result.remark };
    case "blocked":
      return { state: stateOf(situation), next: "wait", delayMs: BLOCKED_MS, fault: result.fault };
    case "failed":
      return end(situation, "terminal", result.fault);
    case "again": {
      const { fault, pauseMs = 0 } = result;
      if (pauseMs > 0) return { state: stateOf(situation), next: "wait", delayMs: pauseMs, fault };
      const delayMs = nextDelay(situation);
      if (delayMs === undefined) return end(situation, "exhausted", fault);
      return { state: stateOf(situation), next: "retry", delayMs, fault };
    }
    case "uncertain":
      return afterDoubt(result.fault, situation);
  }
}

/** Whether a call that may have been heard may be made once more: the peer knows its key, or the policy says so. */
export function mayBeRepeated({ onUncertain, ageMs, keyValidMs }: Situation): boolean {
  return onUncertain === "retry" || ageMs < keyValidMs;
}

/** What follows where nobody knows how a call ended, this one or one that was begun by a process that is gone. */
export function afterDoubt(fault: Fault, situation: Situation): Decision {
  const delayMs = nextDelay(situation);
  const mayRepeat = isKnownAgain(situation, delayMs ?? 0) || situation.onUncertain === "retry";
  if (delayMs === undefined || !mayRepeat) return { state: "held", fault };
  return { state: "uncertain", next: "retry", delayMs, fault };
}

/** A call that may have been heard before is not simply planned again. */
function stateOf({ uncertainties }: Situation): "planned" | "uncertain" {
  return uncertainties > 0 ? "uncertain" : "planned";
}

/**
 * An earlier call may have been the one that counted. A peer that knows the key can tell by refusing it; one that is only out of
 * order has not told, and by the time of a replay it has forgotten the key, unless it never does.
 */
function end(situation: Situation, death: "terminal" | "exhausted", fault: Fault): Decision {
  const waitMs = death === "exhausted" ? Number.MAX_VALUE : 0;
  if (situation.uncertainties > 0 && !isKnownAgain(situation, waitMs)) return { state: "held", fault };
  return { state: "failed", death, fault };
}

function isKnownAgain({ ageMs, keyValidMs }: Situation, delayMs: number): boolean {
  return ageMs + delayMs < keyValidMs;
}

/** The wait before the next try; undefined where there is none. */
function nextDelay({ attempt, maxAttempts, spentMs, limitMs, delayMs }: Situation): number | undefined {
  const retry = attempt + 1;
  if (retry >= maxAttempts) return undefined;
  const wait = delayMs(retry);
  return spentMs + wait < limitMs ? wait : undefined;
}
