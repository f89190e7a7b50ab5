// Bodies in an operator's hands: read one, see and re-wrap the keys they are sealed with, erase those of one subject.
import { PLAIN, readBodyKeys } from "../body-keys.ts";
import { UkemiError } from "../errors.ts";
import { readBody, type ShownBody } from "../storage/bodies.ts";
import { lockDataKeys, readDataKeys, replaceWrapping, type WrappedKey } from "../storage/data-keys.ts";
import type { ErasurePreview } from "../storage/erasure-choice.ts";
import { uuidv7Floor } from "../storage/ids.ts";
import { sealed as sealedError, unwrap, type Keyring } from "../storage/keyring.ts";
import type { Pool, Queryable } from "../storage/postgres.ts";
import { wrapKey } from "../storage/sealing.ts";
import { countPlainEffects, sealAddresses, sealEffects } from "../storage/seal-effects.ts";
import { countPlain, sealBatch, type SealedBatch, type Sealing } from "../storage/seal-stored.ts";
import { type BatchOptions } from "./batches.ts";
import type { Read } from "./read.ts";
import { erase, previewErase, type ErasureRequest, type ErasureResult } from "./erasure.ts";
import { readMandate, readText, type Mandate } from "./mandate.ts";
import { inTransaction } from "./transaction.ts";

/** A data key, without what is secret. */
export interface ListedDataKey {
  readonly id: string;
  /** The name of the master key that opens it. */
  readonly wrapped_by: string;
  readonly created_at: Date;
  /** False where the bodyKeys of this process do not open it. */
  readonly opens: boolean;
}

/** What a re-wrap did. */
export interface RewrapResult {
  /** The name of the master key that opens every data key from now on. */
  readonly wrapped_by: string;
  /** How many data keys another master key opened before. */
  readonly changed: number;
  readonly data_keys: number;
}

/** What lies as it came. */
export interface PlainCounts {
  /** Bodies of events. */
  readonly plain: number;
  /** Effects with an intent, a target, a receipt or an answer. */
  readonly effects: number;
  /** Addresses that get no mail. */
  readonly addresses: number;
}

/** What sealing did. */
export interface SealResult {
  /** Bodies of events. */
  readonly sealed: number;
  readonly effects: number;
  readonly addresses: number;
  /** True where it was stopped before the end. */
  readonly stopped: boolean;
}

/** What can be done with bodies. */
export interface Bodies {
  /** The body of one event as it came, by our id or the sender's; undefined where there is no such event. */
  show(event: string, options?: { readonly tenants?: readonly string[] }): Promise<ShownBody | undefined>;
  /** Every data key, the oldest first. */
  keys(): Promise<readonly ListedDataKey[]>;
  /** What a re-wrap would do. Throws where a data key could not be opened. */
  previewRewrap(): Promise<RewrapResult>;
  /** Wraps every data key anew under the first master key, all or none: the others can be taken away afterwards. */
  rewrap(mandate: Mandate): Promise<RewrapResult>;
  /** How much lies as it came. */
  previewSeal(): Promise<PlainCounts>;
  /** Seals bodies, and what effects hold, that were stored before bodyKeys was set. What is done stays done. */
  seal(mandate: Mandate, options?: BatchOptions): Promise<SealResult>;
  /** What an erasure would touch. */
  previewErase(request: ErasureRequest): Promise<ErasurePreview>;
  /** Removes every body of the events that carry the ref, what was sent because of them, and the words that errors may have taken from them. */
  erase(request: ErasureRequest, mandate: Mandate, options?: BatchOptions): Promise<ErasureResult>;
}

const ID_MAX = 500;

export function createBodies(
  open: () => Promise<Pool>,
  read: Read,
  { bodyKeys, keyring }: { readonly bodyKeys: readonly string[]; readonly keyring: Keyring },
): Bodies {
  const masters = readBodyKeys(bodyKeys);

  /** Those that another master key opens than the first, wrapped under it. */
  function plan(rows: readonly WrappedKey[]) {
    const first = masters[0];
    if (!first || bodyKeys[0] === PLAIN) throw noMaster();
    const old = rows.filter((row) => row.wrapped_by !== first.name);
    const keys = old.map((row) => {
      const key = unwrap(masters, row);
      if (!key) throw sealedError(masters, row);
      return { id: row.id, wrapped: wrapKey(first, key) };
    });
    const from = [...new Set(old.map((row) => row.wrapped_by))];
    return { first, keys, from, data_keys: rows.length };
  }

  return {
    async show(given, { tenants } = {}) {
      const id = readText("event", given, ID_MAX);
      return read((client) => readBody(client, keyring, id, tenants));
    },
    async keys() {
      const rows = await read(readDataKeys);
      return rows.map((row) => ({
        id: row.id,
        wrapped_by: row.wrapped_by,
        created_at: row.created_at,
        opens: unwrap(masters, row) !== undefined,
      }));
    },
    async previewRewrap() {
      const { first, keys, data_keys } = plan(await read(readDataKeys));
      return { wrapped_by: first.name, changed: keys.length, data_keys };
    },
    async rewrap(mandate) {
      const by = readMandate(mandate);
      return inTransaction(await open(), async (client) => {
        const { first, keys, from, data_keys } = plan(await lockDataKeys(client));
        await replaceWrapping(client, { keys, from, to: first.name, ...by });
        return { wrapped_by: first.name, changed: keys.length, data_keys };
      });
    },
    async previewSeal() {
      if (!keyring.seals) throw noMaster();
      // no limit of time: every body is looked at, as the sealing itself does
      const pool = await open();
      return { plain: await countPlain(pool), ...(await countPlainEffects(pool)) };
    },
    async seal(mandate, options = {}) {
      const by = readMandate(mandate);
      if (!keyring.seals) throw noMaster();
      const pool = await open();
      await keyring.load(pool);
      const plain = await countPlainEffects(pool);
      const total = (await countPlain(pool)) + plain.effects + plain.addresses;
      let done = 0;
      const seal = async (batch: (client: Queryable, sealing: Sealing) => Promise<SealedBatch>) => {
        let sealed = 0;
        for (let after: string | undefined = uuidv7Floor(0); after !== undefined;) {
          if (options.signal?.aborted) break;
          const sealing: Sealing = { keyring, after, ...by };
          const step: SealedBatch = await inTransaction(pool, (client) => batch(client, sealing));
          sealed += step.sealed;
          done += step.sealed;
          after = step.next;
          options.onProgress?.({ done: Math.min(done, total), total });
        }
        return sealed;
      };
      const sealed = await seal(sealBatch);
      const effects = await seal(sealEffects);
      const addresses = await seal(async (client, sealing) => {
        const count = await sealAddresses(client, sealing);
        return { sealed: count, next: count === 0 ? undefined : sealing.after };
      });
      return { sealed, effects, addresses, stopped: options.signal?.aborted ?? false };
    },
    previewErase: (request) => previewErase(read, request),
    erase: (request, mandate, options) => erase({ open, read }, request, mandate, options),
  };
}

function noMaster(): UkemiError {
  return new UkemiError(
    "invalid_option",
    "There is no master key to wrap with: put the new one in the first place of UKEMI_BODY_KEYS (bodyKeys).",
  );
}
