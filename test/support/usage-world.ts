// A file of records, a meter that does as it is told, and the exporter as a process of its own between them.
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { startApiMeter, type ApiMeter, type MeterFault } from "../../src/testing/api-meter.ts";
import { runCli } from "./cli.ts";

export const RECORDS = 1000;
export const BATCH = 100;
const TOKEN = "token-canary-51c7";

export interface UsageWorld {
  readonly meter: ApiMeter;
  /** What the meter does from now on. */
  fault: ((call: number) => MeterFault | undefined) | undefined;
  usage(args: readonly string[], env?: Readonly<Record<string, string>>): ReturnType<typeof runCli>;
  readonly file: string;
  /** Where a test may mount a disk before the first run: the data folder lies below it. */
  readonly disk: string;
  readonly spool: string;
}

export async function createUsageWorld(): Promise<UsageWorld> {
  const folder = await mkdtemp(join(tmpdir(), "ukemi-usage-"));
  const file = join(folder, "use.ndjson");
  const lines = Array.from({ length: RECORDS }, (_, index) =>
    JSON.stringify({ meter: "calls", units: index, at: index }),
  );
  await writeFile(file, `${lines.join("\n")}\n`);
  const meter = await startApiMeter({ token: TOKEN, fault: (call) => world.fault?.(call) });
  onTestFinished(async () => {
    await meter.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const disk = join(folder, "disk");
  const data = join(disk, "data");
  const world: UsageWorld = {
    meter,
    fault: undefined,
    file,
    disk,
    spool: join(data, "usage"),
    usage: (args, env = {}) =>
      runCli(["usage", ...args, "--data", data], {
        API_METER_URL: meter.url,
        API_METER_TOKEN: TOKEN,
        API_METER_TENANT_ID: "acme",
        BATCH_SIZE: String(BATCH),
        MAX_RETRIES: "0",
        ...env,
      }),
  };
  return world;
}

/** After a last push the whole file is at the meter, each record once in effect, and nothing is left over. */
export async function expectWhole({ meter, usage, spool, file }: UsageWorld): Promise<void> {
  const last = await usage(["push", file]);
  expect(last.output).not.toContain(TOKEN);
  expect(last, last.output).toMatchObject({ code: 0 });
  expect(meter.records.size).toBe(RECORDS);
  const units = [...meter.records.values()].reduce((sum, record) => sum + Number(record.units), 0);
  expect(units).toBe((RECORDS * (RECORDS - 1)) / 2);
  expect(await readdir(spool)).toEqual([]);
}
