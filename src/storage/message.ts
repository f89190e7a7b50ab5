// What a statement is given, in PostgreSQL's binary form, written as it is sent into memory that is used again and again: a
// Buffer for each parameter, and the larger ones that `pg` gathers them in, kept the garbage collector busier than all the rest.

/** How the values of a type are written. */
export interface Kind<T> {
  readonly oid: number;
  bytes(value: T): number;
  write(out: Buffer, value: T, at: number): void;
}

/** One of the parameters of a statement, ready to be written. */
export type Parameter = (message: Message) => void;

/** What a message needs is known when it is written. The largest batches are rare, and their memory is not kept. */
const MEMORY = { least: 64 * 1024, mostKept: 1024 * 1024 };

/** Nobody uses it now. It is enough: a message is written and on its way before the next one begins. */
let spare: Buffer | undefined;

/** Bytes one behind the other. Whoever takes one gives it back when nobody reads it any more. */
export class Message {
  #out: Buffer;
  #at = 0;

  constructor() {
    // never a part of the memory that all small Buffers share: it would be kept with it
    this.#out = spare ?? Buffer.allocUnsafeSlow(MEMORY.least);
    spare = undefined;
  }

  /** What was written so far, where it lies. */
  bytes(): Buffer {
    return this.#out.subarray(0, this.#at);
  }

  giveBack(): void {
    if (this.#out.length <= MEMORY.mostKept && this.#out.length > (spare?.length ?? 0)) spare = this.#out;
  }

  byte(value: number): void {
    this.#room(1);
    this.#out[this.#at++] = value;
  }

  int16(value: number): void {
    this.#room(2);
    this.#at = this.#out.writeInt16BE(value, this.#at);
  }

  int32(value: number): void {
    this.#room(4);
    this.#at = this.#out.writeInt32BE(value, this.#at);
  }

  /** Text that ends with a NUL. */
  name(text: string): void {
    this.#room(3 * text.length + 1);
    this.#at += this.#out.write(text, this.#at);
    this.#out[this.#at++] = 0;
  }

  /** What is written meanwhile, behind its length, which counts itself where the protocol has it so. */
  measured(write: () => void, ofItself: number): void {
    const start = this.#at;
    this.int32(0);
    write();
    this.#out.writeInt32BE(this.#at - start - 4 + ofItself, start);
  }

  /** A value behind its length. */
  value<T>({ bytes, write }: Pick<Kind<T>, "bytes" | "write">, value: T | null): void {
    if (value === null) return this.int32(-1);
    const length = bytes(value);
    this.#room(4 + length);
    this.#out.writeInt32BE(length, this.#at);
    write(this.#out, value, this.#at + 4);
    this.#at += 4 + length;
  }

  /** A value for each of the items. */
  array<T, I>(kind: Kind<T>, items: readonly I[], read: (item: I) => T | null): void {
    this.int32(items.length === 0 ? 0 : 1); // dimensions
    const nullsAt = this.#at;
    this.int32(0);
    this.int32(kind.oid);
    if (items.length === 0) return;
    this.int32(items.length);
    this.int32(1); // lower bound
    let hasNulls = false;
    for (const item of items) {
      const value = read(item);
      hasNulls ||= value === null;
      this.value(kind, value);
    }
    if (hasNulls) this.#out.writeInt32BE(1, nullsAt);
  }

  #room(bytes: number): void {
    const needed = this.#at + bytes;
    if (needed <= this.#out.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#out.length));
    this.#out.copy(larger, 0, 0, this.#at);
    this.#out = larger;
  }
}

/** A parameter of one value. */
export const one =
  <T>(kind: Kind<T>, value: T | null): Parameter =>
  (message) =>
    message.value(kind, value);

/** A parameter that is an array, with a value for each of the items. */
export const each =
  <T, I>(kind: Kind<T>, items: readonly I[], read: (item: I) => T | null): Parameter =>
  (message) =>
    message.measured(() => message.array(kind, items, read), 0);

/** A parameter that is an array of these values. */
export const all = <T>(kind: Kind<T>, values: readonly (T | null)[]): Parameter =>
  each(kind, values, (value) => value);

/** A parameter by itself, for `pg` to send: null, or a Buffer, which it takes to be binary. */
export function asBuffer(parameter: Parameter): Buffer | null {
  const message = new Message();
  parameter(message);
  const bytes = message.bytes();
  const given = bytes.readInt32BE(0) < 0 ? null : Buffer.from(bytes.subarray(4));
  message.giveBack();
  return given;
}

/** 2000-01-01 in Unix milliseconds: where PostgreSQL's timestamps start. */
const POSTGRES_EPOCH_MS = 946_684_800_000;
const HALF = 2 ** 32;

export const BYTEA: Kind<Buffer> = {
  oid: 17,
  bytes: (value) => value.length,
  write: (out, value, at) => void value.copy(out, at),
};
export const TEXT: Kind<string> = {
  oid: 25,
  bytes: (value) => Buffer.byteLength(value),
  write: (out, value, at) => void out.write(value, at),
};
export const UUID: Kind<string> = {
  oid: 2950,
  bytes: () => 16,
  write: (out, value, at) => void out.write(value.replaceAll("-", ""), at, "hex"),
};
export const BOOL: Kind<boolean> = {
  oid: 16,
  bytes: () => 1,
  write: (out, value, at) => void out.writeUInt8(value ? 1 : 0, at),
};
export const INT: Kind<number> = {
  oid: 23,
  bytes: () => 4,
  write: (out, value, at) => void out.writeInt32BE(value, at),
};
export const TIMESTAMPTZ: Kind<Date> = {
  oid: 1184,
  bytes: () => 8,
  write(out, value, at) {
    // in halves: as one number, microseconds are exact only until 2285
    const ms = value.getTime() - POSTGRES_EPOCH_MS;
    const high = Math.floor(ms / HALF);
    const low = (ms - high * HALF) * 1000;
    const carried = Math.floor(low / HALF);
    out.writeInt32BE(high * 1000 + carried, at);
    out.writeUInt32BE(low - carried * HALF, at + 4);
  },
};
