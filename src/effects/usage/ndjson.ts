// A file of one JSON text a line, read piece by piece: its size does not matter.
import { isUtf8 } from "node:buffer";
import { open } from "node:fs/promises";

/** A line that is not blank. */
export interface Line {
  /** Counted from 1, as editors do. */
  readonly number: number;
  readonly text: string;
  /** Why its text cannot be used. */
  readonly fault?: string;
}

export interface Piece {
  readonly lines: readonly Line[];
  /** How many bytes of the file have been read so far. */
  readonly bytes: number;
}

/** The text of a larger piece lies outside of the young generation: twice the memory, and slower. */
const PIECE_BYTES = 64 * 1024;
/** Characters. */
const LINE_MAX = 1024 * 1024;
const NEWLINE = 0x0a;

/** Reads the lines of a file, some at a time. The last one need not end with a newline. */
export async function* readLines(path: string): AsyncGenerator<Piece> {
  const file = await open(path);
  try {
    let number = 0;
    let bytes = 0;
    // one buffer for the whole file: what is yielded are texts, which are copies. It grows where a line is longer
    let buffer = Buffer.allocUnsafe(2 * PIECE_BYTES);
    let held = 0; // bytes at its beginning, of a line that has not ended
    let tooLong = false; // that line: it is thrown away until it ends
    for (;;) {
      if (held + PIECE_BYTES > buffer.length) buffer = Buffer.concat([buffer], held + 4 * PIECE_BYTES);
      const { bytesRead } = await file.read(buffer, held, PIECE_BYTES);
      const isEnd = bytesRead === 0;
      bytes += bytesRead;
      const { whole, open } = cut(buffer.subarray(0, held + bytesRead), isEnd);
      const lines: Line[] = [];
      for (const line of whole) {
        number += 1;
        // a mark of the byte order at the beginning is not part of the first line
        const text = number === 1 ? line?.replace(/^\uFEFF/, "") : line;
        if (tooLong) lines.push(tooLongLine(number));
        else if (text === undefined) lines.push({ number, text: "", fault: "it is not UTF-8" });
        else if (text.length > LINE_MAX) lines.push(tooLongLine(number));
        else if (text.trim() !== "") lines.push({ number, text });
        tooLong = false;
      }
      if (isEnd && tooLong) lines.push(tooLongLine(number + 1));
      tooLong ||= open.length > 4 * LINE_MAX; // in bytes
      held = tooLong ? 0 : open.copy(buffer);
      if (lines.length > 0) yield { lines, bytes };
      if (isEnd) return;
    }
  } finally {
    await file.close();
  }
}

/** The lines that have ended, and the bytes of the one that has not. At the end of the file every line has. */
function cut(bytes: Buffer, isEnd: boolean): { readonly whole: Lines; readonly open: Buffer } {
  const end = isEnd ? bytes.length : bytes.lastIndexOf(NEWLINE);
  if (end < 0 || bytes.length === 0) return { whole: [], open: bytes };
  return { whole: textsOf(bytes.subarray(0, end)), open: bytes.subarray(end + 1) };
}

/** Undefined for one that is not UTF-8. */
type Lines = (string | undefined)[];

/** All of them at once where that can be: one by one costs twice as much. */
function textsOf(bytes: Buffer): Lines {
  if (isUtf8(bytes)) return bytes.toString().split("\n");
  const texts: Lines = [];
  for (let from = 0; from <= bytes.length;) {
    const newline = bytes.indexOf(NEWLINE, from);
    const end = newline < 0 ? bytes.length : newline;
    const line = bytes.subarray(from, end);
    texts.push(isUtf8(line) ? line.toString() : undefined);
    from = end + 1;
  }
  return texts;
}

function tooLongLine(number: number): Line {
  return { number, text: "", fault: `it is longer than ${LINE_MAX} characters` };
}
