// What a request carried and an answer may repeat: values of headers and of the query. None of it is kept.
import type { AttemptResult, Fault } from "../attempt.ts";
import { withoutWords } from "../hidden.ts";
import type { HttpIntent } from "./intent.ts";

/** Headers whose values everybody may know. */
const OPEN_HEADERS = new Set(["content-type", "accept", "user-agent"]);
/** Shorter values are numbers and flags, which also stand for other things. */
const VALUE_MIN = 6;

/** The words that no fault of this request may repeat. */
export function wordsOf({ url, headers = {} }: Pick<HttpIntent, "url"> & Partial<HttpIntent>): string[] {
  const asked = [...new URL(url).searchParams.values()].flatMap((value) => [
    value,
    encodeURIComponent(value),
  ]);
  const sent = Object.entries(headers).flatMap(([name, value]) =>
    OPEN_HEADERS.has(name.toLowerCase()) ? [] : [value, ...value.split(" ")],
  );
  return [...new Set([...asked, ...sent])].filter((word) => word.length >= VALUE_MIN);
}

/** The result, whose fault says none of these words. */
export function hide(result: AttemptResult, words: readonly string[]): AttemptResult {
  if (!("fault" in result) || words.length === 0) return result;
  return { ...result, fault: withoutIn(result.fault, words) };
}

function withoutIn({ answer, ...fault }: Fault, words: readonly string[]): Fault {
  const clean =
    answer && Object.entries(answer).map(([name, value]) => [name, ofValue(value, words)] as const);
  return {
    ...fault,
    message: withoutWords(fault.message, words),
    ...(clean && { answer: Object.fromEntries(clean) }),
  };
}

function ofValue(value: unknown, words: readonly string[]): unknown {
  return typeof value === "string" ? withoutWords(value, words) : value;
}
