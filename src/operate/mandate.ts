// Who acts, and why: without both, nothing is changed.
import { UkemiError } from "../errors.ts";

/** Who acts, and why. Both are kept in the audit, in the same commit as what was done. */
export interface Mandate {
  /** Such as `cli:jane` or `api:admin`. */
  readonly actor: string;
  /** In a person's words: 1 to 500 characters. */
  readonly reason: string;
}

const ACTOR_MAX = 200;
const REASON_MAX = 500;

/** The mandate without blanks around its words, or an error that names what is missing. */
export function readMandate({ actor, reason }: Mandate): Mandate {
  return { actor: readText("actor", actor, ACTOR_MAX), reason: readText("reason", reason, REASON_MAX) };
}

/** Text that says something and that PostgreSQL can hold. */
export function readText(name: string, value: unknown, most: number): string {
  const text = typeof value === "string" ? value.trim() : "";
  if (text === "" || text.length > most || text.includes("\u0000")) {
    throw wrong(name, `must be text of 1 to ${most} characters`);
  }
  return text;
}

/** An error about one parameter. */
export function wrong(name: string, expectation: string): UkemiError {
  return new UkemiError(
    "invalid_parameter",
    `The parameter ${JSON.stringify(name.slice(0, 64))} ${expectation}.`,
  );
}
