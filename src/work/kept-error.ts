// An error as it may be kept and shown: bounded, and without secrets or addresses.
import type { KeptError } from "../storage/settle-failed.ts";

const MESSAGE_MAX = 1000;
const STACK_MAX = 8000;
const CLASS_MAX = 100;

/** What must never be kept, whoever wrote it into an error: the kind of thing goes in its place. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:sk|rk|pk)_(?:live|test)_\w+/g, "[key]"],
  [/\bwhsec_[A-Za-z0-9+/=_-]+/g, "[secret]"],
  [/\b((?:pi|seti|cs)_[A-Za-z0-9]+)_secret_[A-Za-z0-9]+/g, "$1_secret_[secret]"],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, "[token]"],
  [/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+/gi, "$1 [token]"],
  [/\b(AKIA|ASIA)[A-Z0-9]{16}\b/g, "[key]"],
  [/\b(?:ghp|gho|ghs|xox[abpr])[_-][A-Za-z0-9-]{10,}/g, "[token]"],
  [/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/:@]{0,200}:[^\s/]{0,200}@/gi, "$1[secret]@"],
  [
    /(password|passwd|secret|token|api[_-]?key|authorization|signature)(\\*["']?\s*[:=]\s*\\*["']?)[^\s"'\\,;&)}]+/gi,
    "$1$2[secret]",
  ],
  [
    /(?<![\p{L}\p{N}._%+'-])[\p{L}\p{N}._%+'-]{1,64}@[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}-]{1,63}){1,8}/gu,
    "[address]",
  ],
  [/\b\d(?:[ -]?\d){12,18}\b/g, "[number]"],
  [/\b(?:\d{1,3}\.){3}\d{1,3}\b/g, "[address]"],
];

/** Takes out secrets and addresses. What PostgreSQL's text cannot hold goes too. */
export function redact(text: string): string {
  let clean = text.replaceAll(/[\0\p{Cs}]/gu, "\uFFFD");
  for (const [pattern, place] of SECRETS) clean = clean.replace(pattern, place);
  return clean;
}

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
