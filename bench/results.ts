// The document that keeps what each contest came to when it was last run: they take hours together, and minutes alone.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { barsIn, COLUMNS_OF_BARS, type Judged } from "./bars.ts";
import { show, showRemarks, type Table } from "./tables.ts";

/** What a contest came to. */
export interface Result {
  readonly contest: string;
  /** When, to the minute. */
  readonly at: string;
  readonly rounds: number;
  /** A look, not a measurement. */
  readonly quick: boolean;
  readonly machine: string;
  readonly tables: readonly Table[];
  readonly judged: readonly Judged[];
}

const FOLDER = new URL("results/", import.meta.url);
const DOCUMENT = new URL("results.md", import.meta.url);

/** The machine, for the table; `server` is what PostgreSQL says of itself. */
export function machineOf(server: string): string {
  return `${cpus().length} × ${cpus()[0]?.model ?? "?"}, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}, ${server}`;
}

/** Keeps them, and writes the document of all that are kept, in the order of the contests. */
export async function keepResults(results: readonly Result[], contests: readonly string[]): Promise<void> {
  await mkdir(FOLDER, { recursive: true });
  const kept: Result[] = [];
  for (const contest of contests) {
    const before = await readResult(contest);
    const after = results.find((result) => result.contest === contest);
    const one = newer(before, after);
    if (one === undefined) continue;
    kept.push(one);
    if (one === after) await writeFile(fileOf(contest), `${JSON.stringify(one, undefined, 2)}\n`);
  }
  await writeFile(DOCUMENT, documentOf(kept));
}

/** A look does not replace a measurement. */
export function newer(before: Result | undefined, after: Result | undefined): Result | undefined {
  if (before === undefined || after === undefined) return after ?? before;
  return after.quick && !before.quick ? before : after;
}

const fileOf = (contest: string) => new URL(`${contest}.json`, FOLDER);

async function readResult(contest: string): Promise<Result | undefined> {
  try {
    return JSON.parse(await readFile(fileOf(contest), "utf8")) as Result;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

export function documentOf(results: readonly Result[]): string {
  const judged = results.flatMap((result) =>
    result.judged.map((one) => ({ ...one, length: lengthOf(result) })),
  );
  return [
    "# Last results",
    "",
    "Each ratio is taken within a round; the median of the rounds counts, with the quartiles. Each contest says when and where it was last run.",
    "",
    show({
      title: "Bars",
      columns: [...COLUMNS_OF_BARS, ""],
      rows: barsIn(judged).map(({ cells, of }) => [...cells, of.length]),
    }),
    ...results.flatMap(({ at, machine, tables, ...length }) =>
      tables.map((table) => {
        const [title, ...rest] = show(table).split("\n");
        return `\n${title}\n\n${at}Z, ${lengthOf(length)}. ${machine}.\n${rest.join("\n")}${showRemarks(table)}`;
      }),
    ),
    "",
  ].join("\n");
}

/** Said of everything that comes from a quick run, wherever it is copied to. */
export const QUICK = "quick: a look, not a measurement";

function lengthOf({ rounds, quick }: Pick<Result, "rounds" | "quick">): string {
  const counted = rounds === 1 ? "1 round" : `${rounds} rounds`;
  return quick ? `${counted}, ${QUICK}` : counted;
}
