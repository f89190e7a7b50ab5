// The keyring of a process: the master keys it was given, the data keys they open, and the one that seals what is new.
import { PLAIN, readBodyKeys, type MasterKey } from "../body-keys.ts";
import { UkemiError } from "../errors.ts";
import {
  chooseDigestKey,
  keepDataKey,
  readDataKeys,
  readDigestKey,
  readMonth,
  type WrappedKey,
} from "./data-keys.ts";
import { describeFault } from "./faults.ts";
import type { Tell } from "./news.ts";
import type { Queryable } from "./postgres.ts";
import {
  digestText,
  keyIdOf,
  newDataKey,
  openContent,
  openText,
  sealContent,
  sealText,
  unwrapKey,
  wrapKey,
  type Content,
  type DataKey,
} from "./sealing.ts";

/** A body and its headers as they are stored. */
export interface StoredContent extends Content {
  /** The data key that they are sealed with; null where they lie as they came. */
  readonly keyId: string | null;
}

export interface Keyring {
  /** True where new bodies are sealed. */
  readonly seals: boolean;
  /** The content of an event as it is to be stored. Asks nobody: the key is in memory. */
  seal(event: string, content: Content): StoredContent;
  /** The content as it came. Throws `body_sealed` where the key is missing, `body_altered` where it was changed. */
  open(client: Queryable, event: string, stored: StoredContent): Promise<Content>;
  /** A text that belongs to the row or column with this name, as it is to be stored. */
  sealText(name: string, text: string): string;
  /** The text as it was. Throws as `open` does. */
  openText(client: Queryable, name: string, stored: string): Promise<string>;
  /** By which a text is found again that lies sealed; undefined where this process has no key for it. */
  digest(text: string): string | undefined;
  /** Makes sure that whatever has a digest is found by it. Throws `body_sealed` where the key is missing. */
  know(client: Queryable): Promise<void>;
  /** Opens every data key, and makes the month's. Throws where one cannot be opened. */
  load(client: Queryable): Promise<void>;
  /** Takes the data key of a new month, making it where there is none. Keeps the last one where that fails. */
  renew(client: Queryable): Promise<void>;
}

/** Makes the keyring of the option bodyKeys. Nothing is asked for until load. */
export function createKeyring(bodyKeys: readonly string[], tell: Tell = () => {}): Keyring {
  const masters = readBodyKeys(bodyKeys);
  const first = bodyKeys[0] === PLAIN ? undefined : masters[0];
  const opened = new Map<string, DataKey>();
  let current: DataKey | undefined;
  let digests: DataKey | undefined;
  let lamented: string | undefined;

  /** Reads the table again; those that no master key opens are left out. */
  async function reload(client: Queryable): Promise<readonly WrappedKey[]> {
    const rows = await readDataKeys(client);
    for (const row of rows) {
      const key = opened.has(row.id) ? undefined : unwrap(masters, row);
      if (key) opened.set(row.id, key);
    }
    return rows;
  }

  async function find(client: Queryable, keyId: string, what: string): Promise<DataKey> {
    if (!opened.has(keyId)) {
      const row = (await reload(client)).find(({ id }) => id === keyId);
      if (!row) throw altered(what, "names a data key that does not exist");
      if (!opened.has(keyId)) throw sealed(masters, row);
    }
    return opened.get(keyId)!;
  }

  /** Takes the key of digests that was chosen, if any was. Throws where it cannot be opened. */
  async function know(client: Queryable): Promise<void> {
    if (digests) return;
    const id = await readDigestKey(client);
    if (id !== undefined) digests = await find(client, id, "key of digests");
  }

  /** Whoever seals chooses it, where nobody has. */
  async function takeDigests(client: Queryable): Promise<void> {
    if (digests || masters.length === 0) return;
    if (current && first) await chooseDigestKey(client, current.id);
    await know(client);
  }

  async function takeMonth(client: Queryable, master: MasterKey): Promise<void> {
    const month = await readMonth(client);
    if (current?.id === month) return;
    let row = (await reload(client)).find(({ id }) => id === month);
    if (!row) {
      const made = { id: month, wrapped: wrapKey(master, newDataKey(month)), wrapped_by: master.name };
      await keepDataKey(client, made);
      row = (await reload(client)).find(({ id }) => id === month);
    }
    const key = opened.get(month);
    if (!key) throw row ? sealed(masters, row) : new Error(`the data key ${month} was not kept`);
    current = key;
    lamented = undefined;
  }

  async function renew(client: Queryable): Promise<void> {
    if (!first) return takeDigests(client);
    try {
      await takeMonth(client, first);
      await takeDigests(client);
    } catch (error) {
      // deliveries go on under the last key; said once, for the upkeep comes every few seconds
      const said = describeFault(error);
      if (said !== lamented) {
        tell("error", "the month's data key is missing: bodies are sealed with the last one", {
          data_key: current?.id,
          error: said,
        });
      }
      lamented = said;
    }
  }

  return {
    renew,
    seals: first !== undefined,
    seal(event, content) {
      if (!first) return { ...content, keyId: null };
      const key = current ?? none();
      return { ...sealContent(key, event, content), keyId: key.id };
    },
    sealText: (name, text) => (first ? sealText(current ?? none(), name, text) : text),
    async openText(client, name, stored) {
      const keyId = keyIdOf(stored);
      if (keyId === undefined) return stored;
      const text = openText(await find(client, keyId, name), name, stored);
      if (text === undefined) throw altered(name, "is not what was stored");
      return text;
    },
    digest: (text) => digests && digestText(digests, text),
    know,
    async open(client, event, { keyId, ...stored }) {
      if (keyId === null) return stored;
      const what = `body of the event ${event}`;
      const content = openContent(await find(client, keyId, what), event, stored);
      if (!content) throw altered(what, "is not what was stored");
      return content;
    },
    async load(client) {
      const rows = await reload(client);
      for (const row of rows) if (!opened.has(row.id)) throw sealed(masters, row);
      if (!first) return takeDigests(client);
      current = opened.get(rows.at(-1)?.id ?? "");
      if (current) await renew(client);
      else await takeMonth(client, first);
      await takeDigests(client);
    },
  };
}

/** Opens nothing, and seals nothing. */
export const NO_KEYS = createKeyring([]);

function none(): never {
  throw new UkemiError("store_unavailable", "There is no key to seal with yet.");
}

/** Opens a data key with the master key that it names; undefined where that is missing or another. */
export function unwrap(masters: readonly MasterKey[], row: WrappedKey): DataKey | undefined {
  const master = masters.find(({ name }) => name === row.wrapped_by);
  return master && unwrapKey(master, row.id, row.wrapped);
}

/** Says which master key is missing, or wrong. */
export function sealed(masters: readonly MasterKey[], { id, wrapped_by: name }: WrappedKey): UkemiError {
  const known = masters.some((master) => master.name === name);
  const fault = known
    ? `the key named ${JSON.stringify(name)} in bodyKeys is not the one that sealed it`
    : `bodyKeys has no key named ${JSON.stringify(name)}`;
  return new UkemiError("body_sealed", `The data key ${id} cannot be opened: ${fault}.`);
}

function altered(what: string, how: string): UkemiError {
  return new UkemiError("body_altered", `The stored ${what} ${how}.`);
}
