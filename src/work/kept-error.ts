// An error as it may be kept and shown: bounded, and without secrets or addresses.
import type { KeptError } from "../storage/settle.ts";

const MESSAGE_MAX = 1000;
const STACK_MAX = 8000;
const CLASS_MAX = 100;

/** What must never be kept, whoever wrote it into an error: the kind of thing goes in its place. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]+/g, "[key]"],
  [/\bwhsec_[A-Za-z0-9+/=_-]+/g, "[secret]"],
  [/\b((?:pi|seti|cs)_[A-Za-z0-9]+)_secret_[A-Za-z0-9]+/g, "$1_secret_[secret]"],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, "[token]"],
  [/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+/gi, "$1 [token]"],
  [/\b(AKIA|ASIA)[A-Z0-9]{16}\b/g, "[key]"],
  [/\b(?:ghp|gho|ghs|xox[abpr])[_-][A-Za-z0-9-]{10,}/g, "[token]"],
  [/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/:@]*:[^\s/@]*@/gi, "$1[secret]@"],
  [
    /\b(password|passwd|secret|token|api[_-]?key|authorization|signature)(["']?\s*[:=]\s*["']?)[^\s"',;&)}]+/gi,
    "$1$2[secret]",
  ],
  [/[\p{L}\p{N}._%+'-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+/gu, "[address]"],
  [/\b\d(?:[ -]?\d){12,18}\b/g, "[number]"],
  [/\b(?:\d{1,3}\.){3}\d{1,3}\b/g, "[address]"],
];

/** Takes out secrets and addresses. What PostgreSQL's text cannot hold goes too. */
export function redact(text: string): string {
  let clean = text.replaceAll(/[\0\p{Cs}]/gu, "\uFFFD");
  for (const [pattern, place] of SECRETS) clean = clean.replace(pattern, place);
  return clean;
}

/** Whatever was thrown, made fit to be kept. */
export function keepError(thrown: unknown): KeptError {
  try {
    return readError(thrown);
  } catch {
    return { class: "NotAnError", message: "something that cannot be shown", stack: null };
  }
}

function readError(thrown: unknown): KeptError {
  const error = thrown instanceof Error ? thrown : undefined;
  const message = typeof error?.message === "string" ? error.message : describe(error?.message ?? thrown);
  const stack = error?.stack;
  return {
    class: redact(classOf(thrown)).slice(0, CLASS_MAX),
    message: redact(cutTo(message, 4 * MESSAGE_MAX)).slice(0, MESSAGE_MAX),
    stack: typeof stack === "string" ? redact(cutTo(stack, 2 * STACK_MAX)).slice(0, STACK_MAX) : null,
  };
}

/** The name by which dead letters are grouped: the error's, with its code where that says more. */
function classOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return "NotAnError";
  const name = typeof thrown.name === "string" && thrown.name !== "" ? thrown.name : "Error";
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
  return text.length > length ? text.slice(0, length) : text;
}
