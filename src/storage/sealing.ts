// Sealing: AES-256-GCM over a body and its headers, over texts, and over the keys that do it. Nothing here knows a table.
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import type { MasterKey } from "../body-keys.ts";

/** A key that seals bodies. */
export interface DataKey {
  readonly id: string;
  readonly key: Buffer;
}

/** A body and its headers (JSON text), as they came or as they are stored. */
export interface Content {
  readonly body: Buffer;
  readonly headers: string;
}

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

/** The first byte of everything sealed: tells the form, should there ever be another, and no JSON begins with it. */
const FORM = Buffer.from([1]);

/**
 * Seals the content of an event: readable only with the data key, and only as the content of this event. Body and headers
 * are encrypted in one go, which costs half as much; the body carries nonce and tag for both.
 */
export function sealContent(dataKey: DataKey, event: string, { body, headers }: Content): Content {
  const first = Buffer.from(headers);
  const sealed = encrypt(keyOf(dataKey, event), [first, body], boundToEvent(dataKey, event, first.length));
  const start = FORM.length + NONCE_BYTES;
  return {
    body: Buffer.concat([sealed.subarray(0, start), sealed.subarray(start + first.length)]),
    headers: sealed.toString("base64", start, start + first.length),
  };
}

/** Opens what sealContent has sealed; undefined where it was changed since, or belongs to another event. */
export function openContent(dataKey: DataKey, event: string, sealed: Content): Content | undefined {
  const first = Buffer.from(sealed.headers, "base64");
  const start = FORM.length + NONCE_BYTES;
  const whole = Buffer.concat([sealed.body.subarray(0, start), first, sealed.body.subarray(start)]);
  const plain = decrypt(keyOf(dataKey, event), whole, boundToEvent(dataKey, event, first.length));
  return plain && { body: plain.subarray(first.length), headers: plain.toString("utf8", 0, first.length) };
}

/** Before a text that is sealed; no JSON begins so. */
const MARK = "sealed:";

/** Seals a text that belongs to the row or column with this name. What it gives is a text, too, and names the data key. */
export function sealText(dataKey: DataKey, name: string, text: string): string {
  const sealed = encrypt(textKeyOf(dataKey, name), [Buffer.from(text)], boundTo("text", name, dataKey.id));
  return `${MARK}${dataKey.id}:${sealed.toString("base64")}`;
}

/** The id of the data key that a stored text is sealed with; undefined where it lies as it was. */
export function keyIdOf(stored: string): string | undefined {
  return stored.startsWith(MARK) ? stored.slice(MARK.length, stored.indexOf(":", MARK.length)) : undefined;
}

/** Opens what sealText has sealed; undefined where it was changed since, or stood under another name. */
export function openText(dataKey: DataKey, name: string, stored: string): string | undefined {
  const sealed = Buffer.from(stored.slice(MARK.length + dataKey.id.length + 1), "base64");
  return decrypt(textKeyOf(dataKey, name), sealed, boundTo("text", name, dataKey.id))?.toString();
}

/** A digest that only who has the key can make: the same for the same text, and no help to who guesses. */
export function digestText(dataKey: DataKey, text: string): string {
  const key = createHmac("sha256", dataKey.key).update("ukemi\u0000digests").digest();
  return `hmac:${createHmac("sha256", key).update(text).digest("base64url")}`;
}

/** A new data key. */
export function newDataKey(id: string): DataKey {
  return { id, key: randomBytes(KEY_BYTES) };
}

/** Seals a data key under a master key. */
export function wrapKey(master: MasterKey, { id, key }: DataKey): Buffer {
  return encrypt(master.key, [key], boundTo("data key", id, master.name));
}

/** Opens a data key; undefined where the master key is not the one that sealed it. */
export function unwrapKey(master: MasterKey, id: string, wrapped: Buffer): DataKey | undefined {
  const key = decrypt(master.key, wrapped, boundTo("data key", id, master.name));
  return key && { id, key };
}

/**
 * Each event has a key of its own, derived from the data key: random nonces under one key would be safe for some billion
 * events only.
 */
function keyOf({ key }: DataKey, event: string): Buffer {
  return createHmac("sha256", key).update(event).digest();
}

/** Apart from those of events, whatever the name. */
function textKeyOf({ key }: DataKey, name: string): Buffer {
  return createHmac("sha256", key).update(`text\u0000${name}`).digest();
}

/** The place where the headers end and the body begins is bound too: bytes cannot go from one to the other. */
function boundToEvent({ id }: DataKey, event: string, headersBytes: number): Buffer {
  return boundTo("body", event, id, String(headersBytes));
}

/** What is authenticated with the ciphertext: rows that change places cannot be opened. */
function boundTo(what: string, ...facts: readonly string[]): Buffer {
  return Buffer.from(["ukemi", what, ...facts].join("\u0000"));
}

function encrypt(key: Buffer, plain: readonly Buffer[], bound: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(bound);
  const parts = plain.map((part) => cipher.update(part));
  return Buffer.concat([FORM, nonce, ...parts, cipher.final(), cipher.getAuthTag()]);
}

function decrypt(key: Buffer, sealed: Buffer, bound: Buffer): Buffer | undefined {
  const start = FORM.length + NONCE_BYTES;
  if (sealed.length < start + TAG_BYTES || !sealed.subarray(0, FORM.length).equals(FORM)) return undefined;
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(FORM.length, start), {
    authTagLength: TAG_BYTES,
  })
    .setAAD(bound)
    .setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(start, -TAG_BYTES)), decipher.final()]);
  } catch {
    return undefined; // the tag does not fit
  }
}
