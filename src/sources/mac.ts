// HMAC (RFC 2104) as two hashes of one call each. node:crypto's own makes an object for each message, with contexts of OpenSSL
// in it: 33 µs instead of 6 for a delivery that comes alone, and more for the garbage collector where many come at once.
import { hash } from "node:crypto";

export type MacAlgorithm = "sha1" | "sha256" | "sha512";

const BLOCK_BYTES: Readonly<Record<MacAlgorithm, number>> = { sha1: 64, sha256: 64, sha512: 128 };

/** What a holder of the key makes of a message, which comes in parts. */
export type Mac = (...parts: readonly (string | Buffer)[]) => Buffer;

/** Messages of the usual size are put together here, where nothing waits for anything. */
const desk = Buffer.allocUnsafeSlow(64 * 1024);

export function createMac(algorithm: MacAlgorithm, key: Buffer): Mac {
  const block = Buffer.alloc(BLOCK_BYTES[algorithm]);
  (key.length > block.length ? digestOf(algorithm, [key]) : key).copy(block);
  const inner = Buffer.from(block.map((byte) => byte ^ 0x36));
  const outer = Buffer.from(block.map((byte) => byte ^ 0x5c));
  return (...parts) => digestOf(algorithm, [outer, digestOf(algorithm, [inner, ...parts])]);
}

/** As text first: a Buffer made by node:crypto has memory of its own, a third of what the digest costs. */
function digestOf(algorithm: MacAlgorithm, parts: readonly (string | Buffer)[]): Buffer {
  return Buffer.from(hash(algorithm, joined(parts), "binary"), "latin1");
}

function joined(parts: readonly (string | Buffer)[]): Buffer {
  let bytes = 0;
  for (const part of parts) bytes += Buffer.byteLength(part);
  if (bytes > desk.length) return Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  let at = 0;
  for (const part of parts) at += typeof part === "string" ? desk.write(part, at) : part.copy(desk, at);
  return desk.subarray(0, bytes);
}
