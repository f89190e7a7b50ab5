// Who carries out effects of one kind: the contract behind which mail, HTTP and usage lie.
import type { DestinationLimits } from "../storage/destinations.ts";
import type { Effect, EffectKind } from "../storage/effects.ts";
import type { AttemptResult, CallLimits } from "./attempt.ts";

/** Carries out effects of one kind. */
export interface Performer {
  readonly kind: EffectKind;
  /** How often a call is tried in all, and how long to wait before each retry, counted from 1. */
  readonly retry: { readonly maxAttempts: number; delayMs(retry: number): number };
  /** How long the calls of one effect and the waits between them may take in all. */
  readonly limitMs: number;
  /** How long one call may take. */
  readonly timeoutMs: number;
  /** How many calls one process makes at once. */
  readonly concurrency: number;
  /** The destinations that the settings name: few, and no secret. Others are told together. */
  readonly destinations: readonly string[];
  /** What all processes together keep to. */
  limitsFor(destination: string): DestinationLimits;
  /** For how long after the first call the peer knows the key again; 0 where it never does. */
  keyValidMs(effect: Effect): number;
  /** True where `perform` itself asks for its turn, when it is connected. @default false */
  readonly takesTurn?: boolean;
  /** Makes one call, once on the wire. Never rejects. */
  perform(effect: Effect, limits: CallLimits): Promise<AttemptResult>;
  /** What the audit says of it, beside what every effect has. Undefined where the audit need not know. */
  auditOf(effect: Effect): Readonly<Record<string, unknown>> | undefined;
  close(): Promise<void>;
}
