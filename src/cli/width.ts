// How wide text is in a terminal, and what may be written to one.

/** Characters that take two columns: those of East Asia, and emoji. */
const WIDE =
  /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{1F300}-\u{1FAFF}\u{20000}-\u{3FFFD}]/u;
const MARK = /\p{Mn}/u;

/** Text from elsewhere on one line: what moves the cursor or changes colours must not reach the terminal. */
export function clean(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, " ");
}

/** How many columns the text takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += columnsOf(character);
  return width;
}

/** The text, or its beginning and an ellipsis where it is wider. */
export function cut(text: string, most: number): string {
  if (widthOf(text) <= most) return text;
  let kept = "";
  let width = 1; // of the ellipsis
  for (const character of text) {
    width += columnsOf(character);
    if (width > most) break;
    kept += character;
  }
  return `${kept.trimEnd()}…`;
}

/** The text, or both its ends where it is wider: names that begin alike are told apart by their ends. */
export function cutMiddle(text: string, most: number): string {
  if (widthOf(text) <= most) return text;
  const room = Math.floor((most - 1) / 2);
  let end = "";
  for (const character of Array.from(text).toReversed()) {
    if (widthOf(end) + columnsOf(character) > room) break;
    end = character + end;
  }
  return cut(text, most - room) + end;
}

/** The text on lines that are no wider than this, broken between words; a word that is wider stays whole. */
export function wrap(text: string, most: number): readonly string[] {
  const lines: string[] = [];
  for (const paragraph of text.split("\n")) {
    let line = "";
    for (const word of paragraph.split(" ")) {
      const longer = line === "" ? word : `${line} ${word}`;
      if (line !== "" && widthOf(longer) > most) {
        lines.push(line);
        line = word;
      } else line = longer;
    }
    lines.push(line);
  }
  return lines;
}

function columnsOf(character: string): number {
  if (MARK.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}
