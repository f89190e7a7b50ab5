// What a contest came to, as a table for people.
import type { Spread } from "./contest.ts";

export interface Table {
  readonly title: string;
  /** The first one is above the names. */
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** What a reader of the results should know, such as the settings of each peer. */
  readonly remarks?: readonly string[];
}

/** A contestant's row. */
export interface Row {
  readonly name: string;
  /** Undefined for whom could not be run here. */
  readonly figure: Spread | undefined;
  readonly ratio: Spread | undefined;
  /** The most that its process has had in RAM, in bytes. */
  readonly memory?: number | undefined;
  readonly notes?: string;
}

export interface Figures {
  readonly title: string;
  readonly unit: string;
  /** What the ratio is of. @default "ours ÷ theirs" */
  readonly ratioOf?: string;
  /** Behind the point, of the figures. @default 0 */
  readonly digits?: number;
  readonly rows: readonly Row[];
  readonly remarks?: readonly string[];
}

/** A table of figures and ratios; with a column for memory where somebody's was looked at. */
export function tableOf({
  title,
  unit,
  ratioOf = "ours ÷ theirs",
  digits = 0,
  rows,
  remarks,
}: Figures): Table {
  const hasMemory = rows.some(({ memory }) => memory !== undefined);
  return {
    title,
    columns: ["", unit, ratioOf, ...(hasMemory ? ["peak memory"] : []), ""],
    rows: rows.map(({ name, figure, ratio, memory, notes = "" }) => [
      name,
      figure ? spread(figure, digits) : "not run",
      ratio ? spread(ratio, 2) : "",
      ...(hasMemory ? [memory === undefined ? "" : size(memory)] : []),
      notes,
    ]),
    ...(remarks && { remarks }),
  };
}

/** As Markdown, which a terminal shows as well. */
export function show({ title, columns, rows }: Pick<Table, "title" | "columns" | "rows">): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [`## ${title}`, "", line(columns), `|${columns.map(() => "---|").join("")}`, ...rows.map(line)].join(
    "\n",
  );
}

export function showRemarks({ remarks = [] }: Table): string {
  return remarks.length === 0 ? "" : `\n\n${remarks.map((remark) => `- ${remark}`).join("\n")}`;
}

/** The median with the quartiles. */
export function spread({ low, median, high }: Spread, digits: number): string {
  return `**${median.toFixed(digits)}** (${low.toFixed(digits)}–${high.toFixed(digits)})`;
}

/** Bytes in a unit that leaves few digits. */
export function size(bytes: number): string {
  if (bytes >= 2 ** 30) return `${(bytes / 2 ** 30).toFixed(1)} GB`;
  if (bytes >= 2 ** 20) return `${Math.round(bytes / 2 ** 20)} MB`;
  return `${Math.ceil(bytes / 2 ** 10)} kB`;
}

/** 10000000 as "10,000,000". */
export function grouped(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}
