// The exporter dies with SIGKILL at every named place. The next run completes it: the meter has every record, once in effect,
// and the sum of what was used is what the file says.
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { CRASH_POINTS } from "../../src/crash-point.ts";
import { startApiMeter, type ApiMeter, type MeterFault } from "../../src/testing/api-meter.ts";
import { runCli } from "../support/cli.ts";

const RECORDS = 1000;
const BATCH = 100;
const RESEND = ["resend", "--refused"];
const TOKEN = "token-canary-51c7";

interface World {
  readonly meter: ApiMeter;
  /** What the meter does from now on. */
  fault: ((call: number) => MeterFault | undefined) | undefined;
  usage(args: readonly string[], env?: Readonly<Record<string, string>>): ReturnType<typeof runCli>;
  readonly file: string;
  readonly spool: string;
}

async function setUp(): Promise<World> {
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
  const world: World = {
    meter,
    fault: undefined,
    file,
    spool: join(folder, "data", "usage"),
    usage: (args, env = {}) =>
      runCli(["usage", ...args, "--data", join(folder, "data")], {
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

/** The whole file is at the meter, each record once in effect, and nothing is left over. */
async function expectWhole({ meter, usage, spool, file }: World): Promise<void> {
  const last = await usage(["push", file]);
  expect(last.output).not.toContain(TOKEN);
  expect(last, last.output).toMatchObject({ code: 0 });
  expect(meter.records.size).toBe(RECORDS);
  const units = [...meter.records.values()].reduce((sum, record) => sum + Number(record.units), 0);
  expect(units).toBe((RECORDS * (RECORDS - 1)) / 2);
  expect(await readdir(spool)).toEqual([]);
}

const POINTS = CRASH_POINTS.filter((point) => /^(?:spool|usage)\./.test(point));

test("there are places to die at", () => expect(POINTS.length).toBeGreaterThanOrEqual(8));

test.each(POINTS.flatMap((point) => [1, 3].map((pass) => ({ point, pass }))))(
  "completes what an exporter left that died at $point, pass $pass",
  async ({ point, pass }) => {
    const world = await setUp();
    // every other batch is refused for now, so that it is saved, and is there to be sent and removed later
    world.fault = (call) => (call % 2 === 0 ? { status: 400 } : undefined);
    const isOfResend = point === "spool.before_remove";
    if (isOfResend) {
      expect((await world.usage(["push", world.file])).code).toBe(1);
      world.fault = undefined;
    }
    const died = await world.usage(isOfResend ? RESEND : ["push", world.file], {
      UKEMI_CRASH_AT: `${point}:${pass}`,
    });
    expect(died.code, died.output).toBeNull();
    world.fault = undefined;
    const resent = await world.usage(RESEND);
    expect(resent, resent.output).toMatchObject({ code: 0 });
    await expectWhole(world);
  },
);

test("a batch whose file is torn is told, and never sent", async () => {
  const world = await setUp();
  world.fault = (call) => (call === 1 ? { status: 400, body: "no" } : undefined);
  expect((await world.usage(["push", world.file])).code).toBe(1);
  const name = (await readdir(world.spool)).find((one) => one.endsWith(".refused"));
  await writeFile(join(world.spool, name!), "torn", { flag: "r+" });
  const before = world.meter.calls.length;
  world.fault = undefined;
  const resent = await world.usage(["resend", "--refused"]);
  expect(resent.code).toBe(1);
  expect(resent.stdout).toContain(name!.split(".", 1)[0]);
  expect(world.meter.calls).toHaveLength(before);
  expect(await readdir(world.spool)).toEqual([name]);
});
