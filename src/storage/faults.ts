// What a failed statement means for the caller.
import { UkemiError } from "../errors.ts";

/**
 * - `infrastructure`: the database is away, full, read-only or shutting down; the outcome may be unknown. Try again later.
 * - `contention`: a lock or a conflict with another transaction. Try again soon.
 * - `refused`: the statement itself was refused, and would be again.
 */
export type Fault = "infrastructure" | "contention" | "refused";

/** Errors of the language: a fault in code, which trying again does not mend. */
const OUR_OWN = [TypeError, RangeError, SyntaxError, ReferenceError];

/** Classifies an error of `pg` by its SQLSTATE; an error without one never came from the server's statement. */
export function classifyFault(error: unknown): Fault {
  if (OUR_OWN.some((kind) => error instanceof kind)) return "refused";
  const code = sqlState(error);
  if (code === undefined || endedConnection(error)) return "infrastructure";
  if (code === "57014" || code === "55P03" || code.startsWith("40")) return "contention";
  const infrastructure = ["08", "26", "28", "3D", "53", "57", "58"]; // 26: the connection lost its prepared statements
  if (code === "25006" || infrastructure.includes(code.slice(0, 2))) return "infrastructure";
  return "refused";
}

/** True where the server refused the statement and the connection lives: what came before it in a transaction is undone. */
export function isAnswered(error: unknown): boolean {
  return sqlState(error) !== undefined && !endedConnection(error);
}

/** FATAL and PANIC are about the connection or the server, never about the statement. */
function endedConnection(error: unknown): boolean {
  return error instanceof Error && "severity" in error && ["FATAL", "PANIC"].includes(String(error.severity));
}

/** The SQLSTATE of an error, where it has one. Node's own codes are none: EPIPE is as long, but has no digit. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  const code = error.code;
  return typeof code === "string" && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** One line about a database error that carries no row values (the server's DETAIL does). */
export function describeFault(error: unknown): string {
  if (error instanceof UkemiError) return error.message;
  const state = sqlState(error);
  if (state !== undefined && error instanceof Error) return `${error.message} (SQLSTATE ${state})`;
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return error instanceof Error ? error.message : "unknown error";
}
