// Contest 8: a file of records of use, exported to a meter on this machine, beside a bare loop that posts the same batches.
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Bench } from "../bench.ts";
import { figureOf, ratioOf, runContest } from "../contest.ts";
import { startProgram, type Program } from "../programs.ts";
import { grouped, tableOf } from "../tables.ts";

const EXPORTER = "ukemi usage push";
const LIMIT = "limit: a bare loop of undici";
const RECORDS = 200_000;
const RECORDS_QUICK = 20_000;
/** Once, to see what a large file costs in memory. */
const RECORDS_LARGE = 1_000_000;

export async function measureUsage(bench: Bench): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "ukemi-bench-usage-"));
  const programs: Program[] = [];
  const start = async (file: string) => {
    const program = await startProgram(file, { node: bench.node });
    programs.push(program);
    return program;
  };
  try {
    const meter = await start("./usage/meter.ts");
    const port = await meter.ask<number>("port");
    const file = await writeRecords(folder, bench.quick ? RECORDS_QUICK : RECORDS);
    const [ukemi, limit] = [await start("./usage/ukemi.ts"), await start("./usage/limit.ts")];
    const run = (program: Program, path: string) =>
      program.ask<number>("push", { file: path, port, data: join(folder, "data") });
    const figures = await runContest(
      [
        { name: EXPORTER, run: () => run(ukemi, file) },
        { name: LIMIT, run: () => run(limit, file) },
      ],
      bench,
    );
    const large = await writeRecords(folder, bench.quick ? RECORDS : RECORDS_LARGE);
    const alone = await start("./usage/ukemi.ts"); // a process a file, as users have it: V8's young generation grows with time
    const before = await meter.ask<number>("taken");
    await run(alone, large);
    const taken = (await meter.ask<number>("taken")) - before;
    const memory = await alone.memory();
    const ratio = ratioOf(figures, EXPORTER, LIMIT);
    bench.report(
      tableOf({
        title: "Usage export",
        unit: "records/s",
        rows: [
          {
            name: EXPORTER,
            figure: figureOf(figures, EXPORTER),
            ratio: undefined,
            memory,
            notes: `batches of 500; the peak is that of a process that sends ${grouped(taken)} records`,
          },
          {
            name: LIMIT,
            figure: figureOf(figures, LIMIT),
            ratio,
            notes: "bodies made before the clock runs",
          },
        ],
      }),
    );
    bench.judge({ bar: "usageLimit", measured: ratio.median });
    bench.judge({ bar: "usageMemory", measured: memory / 2 ** 20 });
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

async function writeRecords(folder: string, count: number): Promise<string> {
  const path = join(folder, `${count}.ndjson`);
  const file = await open(path, "w");
  try {
    for (let at = 0; at < count; at += 10_000) {
      const lines = Array.from({ length: Math.min(10_000, count - at) }, (_, index) => recordOf(at + index));
      await file.write(lines.join(""));
    }
  } finally {
    await file.close();
  }
  return path;
}

function recordOf(number: number): string {
  const record = {
    source_event_id: `use_${number.toString(36).padStart(10, "0")}`,
    meter: "api_calls",
    subject: `customer_${number % 1000}`,
    units: 1 + (number % 50),
    occurred_at: new Date(1_790_000_000_000 + number).toISOString(),
  };
  return `${JSON.stringify(record)}\n`;
}
