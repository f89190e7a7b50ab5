// Tables for a terminal.
import { clean, cut, cutMiddle, widthOf } from "./width.ts";

/** Columns that may be cut are never cut below this. */
const LEAST = 12;
/** Where they would get less than this, columns that can be missed are left out. */
const COMFORT = 24;
const GAP = 2;

export interface TableOptions {
  /** Columns of the terminal. @default as wide as it takes */
  readonly width?: number | undefined;
  /** Columns that may be cut where the terminal is too narrow. */
  readonly cut?: readonly string[];
  /** Those of them that hold names, which are cut in the middle. */
  readonly names?: readonly string[];
  /** Columns that are left out where the terminal is too narrow, the first of them first. */
  readonly optional?: readonly string[];
}

/** Lines up rows of the same shape under their column names. */
export function table(rows: readonly Readonly<Record<string, string>>[], options: TableOptions = {}): string {
  const names = columnsFor(rows, options);
  const cells = rows.map((row) => names.map((name) => clean(row[name] ?? "")));
  const wanted = names.map((name) => wantedBy(rows, name));
  const widths = fit(names, wanted, options);
  const line = (texts: readonly string[]) =>
    texts
      .map((text, index) => {
        const isName = options.names?.includes(names[index] ?? "");
        const shown = (isName ? cutMiddle : cut)(text, widths[index] ?? 0);
        return shown + " ".repeat(Math.max(0, (widths[index] ?? 0) - widthOf(shown)));
      })
      .join(" ".repeat(GAP))
      .trimEnd();
  return [line(names), ...cells.map(line)].join("\n");
}

function wantedBy(rows: readonly Readonly<Record<string, string>>[], name: string): number {
  return Math.max(name.length, ...rows.map((row) => widthOf(clean(row[name] ?? ""))));
}

/** The columns that have room, each at the width that it can be read with. */
function columnsFor(
  rows: readonly Readonly<Record<string, string>>[],
  { width = Number.POSITIVE_INFINITY, cut: mayCut = [], optional = [] }: TableOptions,
): readonly string[] {
  let names = Object.keys(rows[0] ?? {});
  const readable = (name: string) =>
    mayCut.includes(name) ? Math.min(wantedBy(rows, name), COMFORT) : wantedBy(rows, name);
  for (const name of optional) {
    const total = names.reduce((sum, item) => sum + readable(item), GAP * (names.length - 1));
    if (total > width) names = names.filter((item) => item !== name);
  }
  return names;
}

/** Takes from the widest of the columns that may be cut, until the table fits or none has anything left to give. */
function fit(names: readonly string[], wanted: readonly number[], options: TableOptions): readonly number[] {
  const widths = [...wanted];
  const { width = Number.POSITIVE_INFINITY, cut: mayCut = [] } = options;
  const total = () => widths.reduce((sum, item) => sum + item, GAP * (widths.length - 1));
  const giving = names.flatMap((name, index) => (mayCut.includes(name) ? [index] : []));
  while (total() > width) {
    const widest = giving.toSorted((left, right) => widths[right]! - widths[left]!)[0];
    if (widest === undefined || widths[widest]! <= LEAST) break;
    widths[widest]! -= 1;
  }
  return widths;
}
