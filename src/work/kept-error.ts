// An error as it may be kept and shown: bounded, and without secrets or addresses.
import { redact } from "../redact.ts";
import type { KeptError } from "../storage/settle-failed.ts";

const MESSAGE_MAX = 1000;
const STACK_MAX = 8000;
const CLASS_MAX = 100;

/** What was thrown where it was no error, or one that cannot even be looked at. */
class NotAnError extends Error {
  override readonly name = "NotAnError";
}

/** Whatever was thrown as an error that can be handled: a revoked proxy would throw in the hands of whoever asks it. */
export function asError(thrown: unknown): Error {
  try {
    if (thrown instanceof Error && typeof thrown.name === "string" && `${thrown.stack}` !== "") return thrown;
  } catch {
    return new NotAnError("something that cannot be shown");
  }
  return new NotAnError(describe(thrown));
}

/** Whatever was thrown, made fit to be kept. */
export function keepError(thrown: unknown): KeptError {
  const error = asError(thrown);
  const message = typeof error.message === "string" ? error.message : describe(error.message);
  const stack = error instanceof NotAnError ? undefined : error.stack;
  return {
    class: redact(classOf(error)).slice(0, CLASS_MAX),
    message: redact(cutTo(message, 2 * MESSAGE_MAX)).slice(0, MESSAGE_MAX),
    stack: typeof stack === "string" ? redact(cutTo(stack, STACK_MAX)).slice(0, STACK_MAX) : null,
  };
}

/** The name by which dead letters are grouped: the error's, with its code where that says more. */
function classOf(thrown: Error): string {
  // those of `pg` are all named "error"
  const given = thrown.name === "error" ? thrown.constructor.name : thrown.name;
  const name = typeof given === "string" && given !== "" ? given : "Error";
  const code = "code" in thrown ? thrown.code : undefined;
  return typeof code === "string" && /^[A-Za-z0-9_.-]{1,60}$/.test(code) ? `${name} ${code}` : name;
}

function describe(thrown: unknown): string {
  try {
    return typeof thrown === "string" ? thrown : (JSON.stringify(thrown) ?? String(thrown));
  } catch {
    return "something that cannot be shown";
  }
}

/** Patterns over a text of a megabyte would hold up the process. */
function cutTo(text: string, length: number): string {
  if (text.length <= length) return text;
  // without its last word: a secret that is cut in two is not recognised any more
  return text.slice(0, length).replace(/(?:[\d -]{1,40}|\S{1,300})$/, "");
}
