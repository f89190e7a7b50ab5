// The source `sns` before a made-up AWS, asked as the inbox asks it.
import { expect } from "vitest";
import { sns, type SnsOptions, type Source } from "../../src/index.ts";
import { createAws, TOPIC, type Signer } from "./sns.ts";

/** Makes the function that makes a source, with the log of what it asked of AWS. */
export function openSns(signer: Signer) {
  return (options: Partial<SnsOptions> = {}, signers: readonly Signer[] = [signer]) => {
    const { fetch, asked } = createAws(...signers);
    return { source: sns({ topics: [TOPIC], fetch, ...options }), asked };
  };
}

/** Prepares, then verifies. */
export async function askSns(source: Source, message: object | string, nowMs = Date.now()) {
  const body = Buffer.from(typeof message === "string" ? message : JSON.stringify(message));
  await source.prepare!({ headers: {}, body }, nowMs);
  return source.verify({ headers: {}, body }, nowMs);
}

/** What `verify` says of a request that it refuses. */
export const refused = (reason: string) => ({ refused: reason, diagnosis: expect.any(String) as unknown });

/** What it says of one that it takes. */
export const VERIFIED = { secretFingerprint: expect.stringMatching(/^[0-9a-f]{12}$/) as unknown };
