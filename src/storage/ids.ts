// Ids that sort by the time they were made (UUID version 7, RFC 9562).
import { randomFillSync } from "node:crypto";

const pool = Buffer.alloc(4096);
let used = pool.length;

/** A UUID v7 for the given time in milliseconds since 1970. */
export function uuidv7(nowMs: number): string {
  if (used + 10 > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const bytes = Buffer.allocUnsafe(16);
  bytes.writeUIntBE(Math.max(0, Math.trunc(nowMs)), 0, 6);
  pool.copy(bytes, 6, used, used + 10);
  used += 10;
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return format(bytes.toString("hex"));
}

/** The smallest UUID v7 of the given time: a bound for "since" and "until". */
export function uuidv7Floor(ms: number): string {
  return format(Math.max(0, Math.trunc(ms)).toString(16).padStart(12, "0") + "70008000000000000000");
}

/** True for text in the usual 8-4-4-4-12 form. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text);
}

function format(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
