// The ledger in an operator's hands: what was done to the outside world, and deciding what nobody else can.
import { UkemiError } from "../errors.ts";
import type { Page } from "../storage/conditions.ts";
import { cancelEffect } from "../storage/effect-cancel.ts";
import { listEffects, type EffectFilter, type ListedEffect } from "../storage/effect-list.ts";
import type { Unchanged } from "../storage/effect-lock.ts";
import { RESOLUTIONS, resolveEffect, type Resolution } from "../storage/effect-resolve.ts";
import { showEffect, type ShownEffect } from "../storage/effect-show.ts";
import { EFFECT_KINDS, EFFECT_STATES, type EffectState } from "../storage/effects.ts";
import { isUuid } from "../storage/ids.ts";
import type { Keyring } from "../storage/keyring.ts";
import type { Pool } from "../storage/postgres.ts";
import { readMandate, wrong, type Mandate } from "./mandate.ts";
import { readPage, UUID, type PageRequest } from "./page.ts";
import type { Reach } from "./reach.ts";
import type { Read } from "./read.ts";
import { inTransaction } from "./transaction.ts";

/** What a resolution did. */
export interface ResolutionResult {
  readonly id: string;
  readonly state: EffectState;
  /** The job that tries it again. */
  readonly job: number | null;
}

/** What a cancellation did. */
export interface CancellationResult {
  readonly id: string;
  readonly state: "cancelled";
  /** Those that waited for it, and were cancelled with it. */
  readonly followers: readonly string[];
}

/** What can be done with effects. */
export interface Ledger {
  /** Newest first. */
  list(filter?: EffectFilter, page?: PageRequest): Promise<Page<ListedEffect>>;
  /** One effect with every call. */
  show(id: string, reach?: Reach): Promise<ShownEffect | undefined>;
  /**
   * Decides an effect of which nobody knows whether it happened: it did (`done`), it did not and shall not (`failed`), or it
   * shall be tried again (`again`), as a repetition.
   */
  resolve(id: string, as: Resolution, mandate: Mandate, reach?: Reach): Promise<ResolutionResult>;
  /** Cancels one that has not begun, with those that wait for it. Its key stays used. */
  cancel(id: string, mandate: Mandate, reach?: Reach): Promise<CancellationResult>;
}

export function createLedger(open: () => Promise<Pool>, read: Read, keyring: Keyring): Ledger {
  return {
    async list(filter = {}, page = {}) {
      readWord("kind", filter.kind, EFFECT_KINDS);
      readWord("state", filter.state, EFFECT_STATES);
      const wanted = readPage(page, UUID);
      return read((client) => listEffects(client, filter, wanted, keyring));
    },
    show: async (id, { tenants } = {}) =>
      isUuid(id) ? read((client) => showEffect(client, id, tenants, keyring)) : undefined,
    async resolve(id, as, mandate, { tenants } = {}) {
      const change = { ...readMandate(mandate), tenants };
      readWord("as", as, RESOLUTIONS);
      requireId(id);
      const result = await inTransaction(await open(), (client) => resolveEffect(client, id, as, change));
      if (result.is === "not_ours") throw onlyByItsCaller();
      if (result.is === "removed") throw erased();
      if (result.is !== "resolved") throw refusalOf(result, "resolved");
      return { id, state: result.state, job: result.job };
    },
    async cancel(id, mandate, { tenants } = {}) {
      const change = { ...readMandate(mandate), tenants };
      requireId(id);
      const result = await inTransaction(await open(), (client) => cancelEffect(client, id, change));
      if (result.is !== "cancelled") throw refusalOf(result, "cancelled");
      return { id, state: "cancelled", followers: result.followers };
    },
  };
}

function readWord(name: string, word: string | undefined, words: readonly string[]): void {
  if (word !== undefined && !words.includes(word)) throw wrong(name, `must be one of ${words.join(", ")}`);
}

/** The error for an effect that the caller does not see. */
export const noEffect = () => new UkemiError("not_found", "There is no effect with this id.");

/** What is no id belongs to no effect. */
function requireId(id: string): void {
  if (!isUuid(id)) throw noEffect();
}

/** What an effect of each state waits for, or what became of it. */
const SAID: Readonly<Record<EffectState, string>> = {
  planned: "it is planned, and has not begun: it can be cancelled",
  sending: "it is being carried out",
  done: "it is done",
  failed: "it has failed; as long as its job is a dead letter, that can be replayed",
  cancelled: "it is cancelled",
  suppressed: "it is suppressed: it was never to be carried out",
  uncertain: "nobody knows whether it happened",
  held: "nobody knows whether it happened, and a person must say so: it can be resolved",
};

function refusalOf(result: Unchanged, act: "resolved" | "cancelled"): UkemiError {
  switch (result.is) {
    case "unknown":
      return noEffect();
    case "settled":
      return new UkemiError("effect_settled", `The effect cannot be ${act}: ${SAID[result.state]}.`);
    case "busy": {
      const hands = result.job === null ? "Its caller" : `Its job ${result.job}`;
      return new UkemiError(
        "effect_in_progress",
        `The effect cannot be ${act} now: ${SAID[result.state]}. ${hands} is at it, or will be in a moment.`,
      );
    }
  }
}

function erased(): UkemiError {
  return new UkemiError(
    "effect_content_removed",
    "The effect cannot be tried again: what it held was erased.",
    {
      remedy: "Say done or failed. What is to be sent must be intended anew, under a key of its own.",
    },
  );
}

function onlyByItsCaller(): UkemiError {
  return wrong(
    "as",
    "cannot be again for a call whose answer somebody waited for: only the application can make it. Say done or failed; after failed, it uses a new key",
  );
}
