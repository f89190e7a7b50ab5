// The exporter dies with SIGKILL at every named place. The next run completes it: the meter has every record, once in effect,
// and the sum of what was used is what the file says.
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CRASH_POINTS } from "../../src/crash-point.ts";
import { createUsageWorld, expectWhole } from "../support/usage-world.ts";

const RESEND = ["resend", "--refused"];
const POINTS = CRASH_POINTS.filter((point) => /^(?:spool|usage)\./.test(point));

test("there are places to die at", () => expect(POINTS.length).toBeGreaterThanOrEqual(8));

test.each(POINTS.flatMap((point) => [1, 3].map((pass) => ({ point, pass }))))(
  "completes what an exporter left that died at $point, pass $pass",
  async ({ point, pass }) => {
    const world = await createUsageWorld();
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
  const world = await createUsageWorld();
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
