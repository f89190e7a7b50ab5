// The words of the ledger, and what one of its rows says to whoever carries it out.

export const EFFECT_KINDS = ["email", "http", "usage", "call"] as const;
/** What kind of act an effect is; `call` is one whose answer somebody waits for. */
export type EffectKind = (typeof EFFECT_KINDS)[number];

export const EFFECT_STATES = [
  "planned",
  "sending",
  "done",
  "failed",
  "cancelled",
  "suppressed",
  "uncertain",
  "held",
] as const;
/** Where an effect is on its way. */
export type EffectState = (typeof EFFECT_STATES)[number];

/** What follows where nobody knows whether a call was heard: it is made again with the same key, or a person decides. */
export type OnUncertain = "retry" | "hold";

/** The queue in which effects of a kind are carried out. */
export const queueOf = (kind: EffectKind): string => `effects.${kind}`;
/** The handler that does it. */
export const handlerOf = (kind: EffectKind): string => `effect.${kind}`;

/** What an effect is, to whoever carries it out. */
export interface Effect {
  readonly id: string;
  readonly kind: EffectKind;
  readonly tenant: string | null;
  readonly dedupeKey: string;
  readonly target: string;
  readonly destination: string;
  readonly onUncertain: OnUncertain;
  /** JSON text of what is to be done. */
  readonly intent: string;
  /** Which call this is, counted from 1. */
  readonly attempt: number;
  /** How many calls ended without anybody knowing how. */
  readonly uncertainties: number;
  /** How long calls and the waits between them have taken so far. */
  readonly spentMs: number;
  /** When the first call was begun, as milliseconds ago on the database's clock. */
  readonly ageMs: number;
}
