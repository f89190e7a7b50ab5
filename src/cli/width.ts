// How wide text is in a terminal, and what may be written to one.
import { stripVTControlCharacters } from "node:util";

/** Characters that take two columns: those of East Asia, and emoji. */
const WIDE =
  /[\p{Emoji_Presentation}\u1100-\u115F\u2E80-\uA4CF\uA960-\uA97C\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{1F300}-\u{1FAFF}\u{20000}-\u{3FFFD}]/u;
const MARK = /[\p{Mn}\p{Me}]/u;

/** Text from elsewhere on one line: what moves the cursor or changes colours must not reach the terminal. */
export function clean(text: string): string {
  // terminals do not agree on how wide a character is with the selector U+FE0F; without it they do
  return stripVTControlCharacters(text)
    .replaceAll("\uFE0F", "")
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, " ");
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

/** Every line of the text, clean, on lines that are no wider than this; what goes on stands below the text that a label introduces. */
export function fold(text: string, most = Number.POSITIVE_INFINITY): string {
  return text
    .split("\n")
    .flatMap((line) => foldLine(clean(line).trimEnd(), most))
    .join("\n");
}

function foldLine(line: string, most: number): readonly string[] {
  if (widthOf(line) <= most) return [line];
  const [head] = /^(?:\S+(?: \S+)? {2,}| *)/.exec(line)!;
  const indent = widthOf(head) > most / 2 ? 0 : widthOf(head);
  const room = Math.max(2, most - indent);
  const lines = wrap(line.slice(indent === 0 ? 0 : head.length), room).flatMap((part) => pieces(part, room));
  return lines.map((part, index) => (index === 0 && indent > 0 ? head : " ".repeat(indent)) + part);
}

/** A word without a place to break it is broken where the line ends. */
function pieces(text: string, most: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  let width = 0;
  for (const character of text) {
    const columns = columnsOf(character);
    if (width + columns > most) {
      lines.push(line);
      line = "";
      width = 0;
    }
    line += character;
    width += columns;
  }
  return [...lines, line];
}

function columnsOf(character: string): number {
  if (MARK.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}
