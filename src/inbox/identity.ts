// A source says who an event is. Sources may be the application's own: what they say is checked before it is stored.
import { isIdentifier } from "../sources/payload.ts";
import type { Identity, Refusal, Verified } from "../sources/source.ts";
import { describeFault } from "../storage/faults.ts";

/** A source must not throw; one that does, refuses: whatever cannot be verified is not accepted. */
export function askSource<T>(ask: () => T | Refusal, isSound: (said: T) => boolean): T | Refusal {
  try {
    const said = ask();
    if (isRefusal(said) || isSound(said)) return said;
    return sourceFailed("it gave an answer that cannot be used");
  } catch (error) {
    return sourceFailed(describeFault(error));
  }
}

function sourceFailed(why: string): Refusal {
  return { refused: "source_failed", diagnosis: `the source itself failed: ${why}` };
}

function isRefusal(said: unknown): said is Refusal {
  return typeof said === "object" && said !== null && "refused" in said && said.refused !== undefined;
}

/** Not so for a promise, which an async `verify` would give: it must never count as verified. */
export function isVerified(said: Verified): boolean {
  return typeof said.secretFingerprint === "string";
}

/** Everything the store takes as text is bounded and well formed, and every time is one. */
export function isStorable(said: Identity): boolean {
  return (
    isIdentifier(said.eventId) &&
    isIdentifier(said.type) &&
    (said.account === "" || isIdentifier(said.account)) &&
    (said.tenant === null || isIdentifier(said.tenant)) &&
    typeof said.livemode === "boolean" &&
    (said.occurredAt === null || isStorableDate(said.occurredAt)) &&
    (said.skip === undefined || typeof said.skip === "string") &&
    Array.isArray(said.refs) &&
    said.refs.every((ref) => isIdentifier(ref.kind) && isIdentifier(ref.id))
  );
}

/** PostgreSQL's dates begin later than JavaScript's. */
function isStorableDate(date: Date): boolean {
  return date instanceof Date && date.getTime() > Date.UTC(-4000, 0, 1);
}
