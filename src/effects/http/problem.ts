// What a peer says about its refusal, made fit to be kept and shown.
import { redact } from "../../redact.ts";
import { isJson, textOf } from "./receipt.ts";
import type { Answer } from "./exchange.ts";

/** The members that are kept of a problem document (RFC 9457), and how long each may be. */
const MEMBERS = { type: 200, title: 200, status: 0, detail: 500, code: 100 } as const;

/** The members of a problem document, kept and shown. */
export type Problem = { readonly [member in keyof typeof MEMBERS]?: string | number };

/** Reads the problem document of an answer; undefined where there is none. Other JSON with these members will do. */
export function readProblem(answer: Answer): Problem | undefined {
  if (!isJson(answer)) return undefined;
  const document = parse(textOf(answer));
  const kept = Object.entries(MEMBERS).flatMap(([member, lengthMax]) => {
    const value = document[member];
    if (typeof value === "number" && Number.isFinite(value)) return [[member, value]];
    return typeof value === "string" && lengthMax > 0 ? [[member, shown(value, lengthMax)]] : [];
  });
  return kept.length === 0 ? undefined : (Object.fromEntries(kept) as Problem);
}

/** A text of somebody else's: one line, bounded, and without secrets or addresses. */
export function shown(text: string, lengthMax: number): string {
  let start = text.slice(0, 2 * lengthMax);
  // without its last word: a secret that is cut in two is not recognised any more
  if (start.length < text.length) start = start.replace(/(?:[\d -]{1,40}|\S{1,300})$/, "");
  return redact(start.replaceAll(/\p{Cc}+/gu, " ")).slice(0, lengthMax);
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const document: unknown = JSON.parse(text);
    return typeof document === "object" && document !== null ? { ...document } : {};
  } catch {
    return {};
  }
}
