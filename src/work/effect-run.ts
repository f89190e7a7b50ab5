// One run at an effect's job: what it needs, how it ends, and what is known when its call has ended.
import type { AttemptResult, Fault } from "../effects/attempt.ts";
import type { Situation } from "../effects/decide.ts";
import type { Kinds } from "../effects/effects.ts";
import type { Performer } from "../effects/performer.ts";
import type { Effect, EffectKind } from "../storage/effects.ts";
import type { Pool } from "../storage/postgres.ts";
import type { Try } from "../storage/settle.ts";
import type { KeptError } from "../storage/settle-failed.ts";
import type { Death } from "../storage/states.ts";
import type { Returns } from "./returns.ts";
import { Stopped, type RunningJob } from "./running.ts";

/** What whoever is responsible should know of an effect or of its destination. */
export type EffectNews =
  /** A call has ended. */
  | { readonly is: "called"; readonly kind: EffectKind; readonly outcome: AttemptResult["is"] }
  | { readonly is: "held"; readonly effect: Effect; readonly fault: Fault }
  /** It is done, and something about it is odd. */
  | { readonly is: "odd"; readonly effect: Effect; readonly remark: string }
  | {
      readonly is: "opened" | "closed" | "paused";
      readonly destination: string;
      readonly reason: string;
    };

export interface EffectRun {
  readonly running: RunningJob;
  readonly performer: Performer;
  /** Whose keyring opens intents, and seals what peers say. */
  readonly kinds: Pick<Kinds, "openKeyring">;
  readonly pool: Pool;
  readonly worker: string;
  readonly returns: Returns;
  readonly tried: () => Try;
  readonly onNews: (news: EffectNews) => void;
}

/** How the try of the job ended. */
export interface EffectEnd {
  readonly outcome: "done" | "retry" | "not_yet" | "dead" | "returned" | "lost";
  readonly death?: Death;
  readonly error?: KeptError;
  readonly effect: string;
}

/** How long an effect may wait for its destination before a person must decide. */
export const PATIENCE_MS = 30 * 86_400_000;

/** What is known when a call has ended. */
export function situationOf({ running, performer }: EffectRun, effect: Effect, tookMs: number): Situation {
  const { attempt, maxAttempts } = running.job;
  return {
    attempt,
    maxAttempts,
    uncertainties: effect.uncertainties,
    onUncertain: effect.onUncertain,
    spentMs: effect.spentMs + tookMs,
    limitMs: performer.limitMs,
    ageMs: effect.ageMs,
    keyValidMs: performer.keyValidMs(effect),
    delayMs: (retry) => performer.retry.delayMs(retry),
  };
}

/** On a stop the worker gives back everything it has. */
export function stoppedAs({ running }: EffectRun): "lost" | "returned" {
  const reason = running.stop.reason();
  return reason instanceof Stopped && reason.reason !== "lease_lost" ? "returned" : "lost";
}
