// Words that a peer was given and may repeat, or that lie sealed elsewhere, taken out of what is said.
import type { AttemptResult } from "./attempt.ts";

/** A word shorter than this says nothing about anybody. */
const SHORT = 2;

/** The text without these words, wherever they stand alone in it. */
export function withoutWords(text: string, hidden: readonly string[]): string {
  let clean = text;
  // the longest first: what is left of one that holds another would tell the rest
  for (const word of hidden.toSorted((left, right) => right.length - left.length)) {
    if (word.length < SHORT) continue;
    const alone = new RegExp(`(?<![\\p{L}\\p{N}])${escaped(word)}(?![\\p{L}\\p{N}])`, "giu");
    clean = clean.replaceAll(alone, "[hidden]");
  }
  return clean;
}

/** Where what peers say lies sealed, the same words must not lie open beside it: the members of a problem that are prose. */
export function withoutProse(result: AttemptResult): AttemptResult {
  if (result.is === "done" || result.fault.answer === undefined) return result;
  const { title, detail } = result.fault.answer;
  const prose = [title, detail].filter((words) => typeof words === "string");
  const message = withoutWords(result.fault.message, prose);
  return { ...result, fault: { ...result.fault, message } };
}

function escaped(word: string): string {
  return word.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`);
}
