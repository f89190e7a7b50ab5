// `npm run bench`: Ukemi beside the peers and the machine's own limit, as ratios taken in one run on one PostgreSQL.
import { barsIn, COLUMNS_OF_BARS, type Judged } from "./bars.ts";
import type { Bench } from "./bench.ts";
import { measureDrain, measureNoop } from "./drain/drain.ts";
import { endOnSignals, isOver, leavingNothing } from "./endings.ts";
import { readFlags } from "./flags.ts";
import { measureBloat } from "./growth/bloat.ts";
import { measureGrowth } from "./growth/growth.ts";
import { measureIngest } from "./ingest/ingest.ts";
import { measureLatency } from "./latency/latency.ts";
import { measureMail } from "./mail/mail.ts";
import { keepResults, machineOf, QUICK, type Result } from "./results.ts";
import { measureScale } from "./scale/scale.ts";
import { startBenchStore } from "./store.ts";
import { show, type Table } from "./tables.ts";
import { measureUsage } from "./usage/usage.ts";

const CONTESTS = {
  ingest: measureIngest,
  drain: measureDrain,
  noop: measureNoop,
  latency: measureLatency,
  scale: measureScale,
  bloat: measureBloat,
  growth: measureGrowth,
  usage: measureUsage,
  mail: measureMail,
} as const satisfies Readonly<Record<string, (bench: Bench) => Promise<void>>>;
/** They take longer than a look may. */
const NOT_QUICK = ["scale", "bloat", "growth"];

endOnSignals();
const flags = readFlags(process.argv.slice(2), { contests: Object.keys(CONTESTS), notQuick: NOT_QUICK });
const results: Result[] = [];
const missing = flags.leftOut.map((name) => `${name}: left out of a quick run; \`--only ${name}\` runs it`);

const store = await startBenchStore();
try {
  for (const name of flags.names) await measure(name as keyof typeof CONTESTS);
  if (!isOver()) await finish();
} finally {
  await store.stop();
}

/** A contest that fails says why; the others are run nevertheless. */
async function measure(name: keyof typeof CONTESTS): Promise<void> {
  if (isOver()) return;
  const startedAt = performance.now();
  const tables: Table[] = [];
  const judged: Judged[] = [];
  try {
    await leavingNothing(() =>
      CONTESTS[name]({
        ...flags,
        store,
        node: process.execPath,
        machineNode: process.env.BENCH_MACHINE_NODE,
        onRun({ done, total, name: contestant }) {
          process.stderr.write(`\r\u001B[K${name}: ${done + 1} of ${total}  ${contestant}`);
        },
        report(table) {
          tables.push(table);
          process.stderr.write("\r\u001B[K");
          console.log(`\n${show(marked(table))}`);
        },
        judge: (one) => void judged.push(one),
      }),
    );
    const at = new Date().toISOString().slice(0, 16);
    const machine = machineOf(await store.describe());
    results.push({
      contest: name,
      at,
      rounds: flags.rounds,
      quick: flags.quick,
      machine,
      tables,
      judged,
    });
  } catch (error) {
    if (isOver()) return;
    process.exitCode = 1;
    missing.push(
      `${name}: FAILED: ${error instanceof Error ? error.message.split("\n", 1)[0] : String(error)}`,
    );
    process.stderr.write("\r\u001B[K");
    console.error(`${name} failed:`, error);
  }
  console.error(`\n${name} took ${Math.round((performance.now() - startedAt) / 1000)} s`);
}

async function finish(): Promise<void> {
  const bars = barsIn(results.flatMap(({ judged }) => judged)).map(({ cells }) => cells);
  if (bars.length > 0)
    console.log(`\n${show(marked({ title: "Bars", columns: COLUMNS_OF_BARS, rows: bars }))}`);
  if (missing.length > 0) console.log(`\n${missing.join("\n")}`);
  await keepResults(results, Object.keys(CONTESTS));
}

function marked(table: Table): Table {
  return flags.quick ? { ...table, title: `${table.title} (${QUICK})` } : table;
}
