// Words that a peer was given and may repeat, taken out of what it says.

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

function escaped(word: string): string {
  return word.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`);
}
