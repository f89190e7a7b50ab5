// What an effect holds, sealed where bodies are: under which name each part lies, and how it is read again.
import { UkemiError } from "../errors.ts";
import type { EffectKind } from "./effects.ts";
import type { Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";

/** The name of what is to be done. */
export const intentName = (effect: string): string => `intent of the effect ${effect}`;
/** The name of what the peer gave for it. */
export const receiptName = (effect: string): string => `receipt of the effect ${effect}`;
/** The name of what the peer said to one call. */
export const answerName = (effect: string, number: number): string =>
  `answer to call ${number} of the effect ${effect}`;
/** A target is bound to its digest, not to a row: the list of addresses has it from the ledger. */
const targetName = (digest: string): string => `target ${digest}`;

/** A target as it lies in the ledger, or an address as it lies on the list. */
export interface StoredTarget {
  /** As it is; or its digest, where the next is set. */
  readonly target: string;
  readonly sealed: string | null;
}

/** Kinds whose target says whom they are about. Of the others it is a name of ours. */
const PERSONAL: readonly EffectKind[] = ["email", "http"];

/** The target as it is to be stored. */
export function sealTarget(keyring: Keyring, kind: EffectKind, target: string): StoredTarget {
  const digest = keyring.seals && PERSONAL.includes(kind) ? keyring.digest(target) : undefined;
  if (digest === undefined) return { target, sealed: null };
  return { target: digest, sealed: keyring.sealText(targetName(digest), target) };
}

/** The target as it was. Throws `body_sealed` where the key is missing, `body_altered` where it was changed. */
export async function openTarget(
  client: Queryable,
  keyring: Keyring,
  { target, sealed }: StoredTarget,
): Promise<string> {
  return sealed === null ? target : keyring.openText(client, targetName(target), sealed);
}

/** Every form in which this target may lie in a table: rows from before there were keys have it as it is. */
export function formsOf(keyring: Keyring, target: string): string[] {
  const digest = keyring.digest(target);
  return digest === undefined ? [target] : [target, digest];
}

/** What stands where this process has no key. */
const SEALED = "(sealed)";

/** What stands where it is not what was stored. */
const ALTERED = "(altered)";

/** A text that is shown to a person, or why it cannot be: one bad row must not hide the others. */
export type Shown =
  | { readonly text: string }
  | { readonly text: undefined; readonly why: "sealed" | "altered" };

/** What the opening gives, or why it cannot be shown. */
export async function showText(opening: Promise<string>): Promise<Shown> {
  try {
    return { text: await opening };
  } catch (error) {
    if (!(error instanceof UkemiError)) throw error;
    if (error.code === "body_sealed") return { text: undefined, why: "sealed" };
    if (error.code === "body_altered") return { text: undefined, why: "altered" };
    throw error;
  }
}

/** The words that stand for it. */
export function wordsOf(shown: Shown): string {
  if (shown.text !== undefined) return shown.text;
  return shown.why === "sealed" ? SEALED : ALTERED;
}
