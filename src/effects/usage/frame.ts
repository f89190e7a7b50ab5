// How a batch lies in its file: a head with length and checksum, then the batch. What was torn is told from what is whole.
import { createHash } from "node:crypto";

const MARK = "ukemi-usage 1";
const HEAD_MAX = 256;

/** What a file must contain to be whole. */
export function frameOf(content: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${MARK} ${content.length} ${digestOf(content)}\n`), content]);
}

/** The content; undefined where it is not what was written. */
export function readFrame(bytes: Buffer): Buffer | undefined {
  const end = bytes.subarray(0, HEAD_MAX).indexOf(0x0a);
  const head = bytes.toString("latin1", 0, Math.max(0, end));
  const [, length, digest] = new RegExp(`^${MARK} (\\d+) ([0-9a-f]{64})$`).exec(head) ?? [];
  const content = bytes.subarray(end + 1);
  return content.length === Number(length) && digestOf(content) === digest ? content : undefined;
}

function digestOf(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}
