// The document that keeps what the last run came to.
import { cpus, totalmem } from "node:os";
import { tableOfBars, type Judged } from "./bars.ts";
import { show, showRemarks, type Table } from "./tables.ts";

export interface Results {
  readonly tables: readonly Table[];
  readonly judged: readonly Judged[];
  /** A line for each contest that failed or was left out. */
  readonly missing: readonly string[];
  readonly rounds: number;
  readonly quick: boolean;
  /** What PostgreSQL says of itself. */
  readonly server: string;
}

export function resultsOf({ tables, judged, missing, rounds, quick, server }: Results): string {
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? "?"}, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}, ${server}`;
  return [
    "# Last results",
    "",
    `${new Date().toISOString().slice(0, 16)}Z, ${rounds} rounds${quick ? ` (${QUICK})` : ""}. ${machine}.`,
    "",
    "Each ratio is taken within a round; the median of the rounds counts, with the quartiles.",
    ...(missing.length === 0 ? [] : ["", ...missing.map((line) => `- ${line}`)]),
    ...(judged.length === 0 ? [] : [`\n${show(marked(tableOfBars(judged), quick))}`]),
    ...tables.map((table) => `\n${show(table)}${showRemarks(table)}`),
    "",
  ].join("\n");
}

const QUICK = "quick: a look, not a measurement";

/** A table says of itself that it is of a quick run, wherever it is copied to. */
export function marked<T extends Pick<Table, "title">>(table: T, quick: boolean): T {
  return quick ? { ...table, title: `${table.title} (${QUICK})` } : table;
}
