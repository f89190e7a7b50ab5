// `npm run bench`: Ukemi beside the peers and the machine's own limit, as ratios taken in one run on one PostgreSQL.
import { writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import type { ContestOptions, Spread } from "./contest.ts";
import { measureDrain, measureNoop } from "./drain/drain.ts";
import { measureIngest } from "./ingest/ingest.ts";
import { measureLatency } from "./latency/latency.ts";
import { startBenchStore, type BenchStore } from "./store.ts";

/** What a contest is given. */
export interface Bench {
  readonly store: BenchStore;
  /** The node that every program runs on. */
  readonly node: string;
  readonly rounds: number;
  /** Shorter runs: a look, not a measurement. */
  readonly quick: boolean;
  readonly onRun: NonNullable<ContestOptions["onRun"]>;
  report(table: Table): void;
}

/** What a contest came to. */
export interface Table {
  readonly title: string;
  readonly unit: string;
  /** What the ratio is of. @default "ours ÷ theirs" */
  readonly ratioOf?: string;
  /** Behind the point, of the figures. @default 0 */
  readonly digits?: number;
  readonly rows: readonly {
    readonly name: string;
    /** Undefined for whom could not be run here. */
    readonly figure: Spread | undefined;
    readonly ratio: Spread | undefined;
    readonly notes?: string;
  }[];
  /** What a reader of the results should know, such as the settings of each peer. */
  readonly remarks?: readonly string[];
}

const CONTESTS = {
  ingest: measureIngest,
  drain: measureDrain,
  noop: measureNoop,
  latency: measureLatency,
} as const;
const ROUNDS = 15;
const ROUNDS_QUICK = 3;

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    rounds: { type: "string" },
  },
});
const names = (values.only?.split(",") ?? Object.keys(CONTESTS)) as (keyof typeof CONTESTS)[];
const unknown = names.find((name) => !Object.hasOwn(CONTESTS, name));
if (unknown !== undefined) {
  console.error(`There is no contest ${unknown}; there are ${Object.keys(CONTESTS).join(", ")}.`);
  process.exit(2);
}
const rounds = Number(values.rounds ?? (values.quick ? ROUNDS_QUICK : ROUNDS));

const tables: Table[] = [];
const store = await startBenchStore();
try {
  for (const name of names) {
    await CONTESTS[name]({
      store,
      node: process.execPath,
      rounds,
      quick: values.quick,
      onRun({ done, total, name: contestant }) {
        process.stderr.write(`\r\u001B[K${name}: ${done + 1} of ${total}  ${contestant}`);
      },
      report(table) {
        tables.push(table);
        process.stderr.write("\r\u001B[K");
        console.log(`\n${show(table)}`);
      },
    });
  }
  await writeFile(new URL("results.md", import.meta.url), await document());
} finally {
  await store.stop();
}

async function document(): Promise<string> {
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? "?"}, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}, ${await store.describe()}`;
  const kind = values.quick ? " (quick: a look, not a measurement)" : "";
  return [
    "# Last results",
    "",
    `${new Date().toISOString().slice(0, 16)}Z, ${rounds} rounds${kind}. ${machine}.`,
    "",
    "Each ratio is taken within a round; the median of the rounds counts, with the quartiles.",
    ...tables.map((table) => `\n${show(table)}${remarks(table)}`),
    "",
  ].join("\n");
}

function show({ title, unit, ratioOf = "ours ÷ theirs", digits = 0, rows }: Table): string {
  return [
    `## ${title}`,
    "",
    `| | ${unit} | ${ratioOf} | |`,
    "|---|---|---|---|",
    ...rows.map(
      ({ name, figure, ratio, notes }) =>
        `| ${name} | ${figure ? spread(figure, digits) : "not run"} | ${ratio ? spread(ratio, 2) : ""} | ${notes ?? ""} |`,
    ),
  ].join("\n");
}

function remarks({ remarks = [] }: Table): string {
  return remarks.length === 0 ? "" : `\n\n${remarks.map((remark) => `- ${remark}`).join("\n")}`;
}

function spread({ low, median, high }: Spread, digits: number): string {
  return `**${median.toFixed(digits)}** (${low.toFixed(digits)}–${high.toFixed(digits)})`;
}
