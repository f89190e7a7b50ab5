// The exporter as a user has it: built; file, records, batches, spool and lock.
import type * as ExporterModule from "../../src/effects/usage/exporter.ts";
import { built } from "../built.ts";
import { answerBench } from "../program.ts";

const { openExporter } = await built<typeof ExporterModule>("effects/usage/exporter.js");

async function push({ file, port, data }: { file: string; port: number; data: string }): Promise<number> {
  const exporter = await openExporter({
    settings: {
      data,
      apiMeterUrl: `http://127.0.0.1:${port}`,
      apiMeterToken: "bench",
      apiMeterTenant: "bench",
      usageBatchSize: 500,
      usageRetriesMax: 3,
    },
    say: (_, text) => process.stderr.write(`${text}\n`),
    signal: new AbortController().signal,
  });
  try {
    const startedAt = performance.now();
    const { figures } = await exporter.push(file);
    return (figures.sent * 1000) / (performance.now() - startedAt);
  } finally {
    await exporter.close();
  }
}

answerBench({ push });
