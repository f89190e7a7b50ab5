// The process's clock jumps: signatures are judged by the database's clock, so honest events keep coming in.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { createDatabaseClock, steadyMs } from "../../src/clock.ts";
import { createDatabase } from "../support/database.ts";
import { startTestServer } from "../support/in-process.ts";
import { brief, expectDrained, expectTold } from "../support/judge.ts";
import { createSender, letters, type Letter, type Sender } from "../support/sender.ts";
import { startServerProcess } from "../support/server.ts";
import { debianFile } from "../support/tools.ts";
import { until } from "../support/until.ts";

const HOUR_MS = 3_600_000;
const realNow = Date.now.bind(Date);
const seconds = () => Math.floor(realNow() / 1000);

/** Puts a clock that can jump in the place of Date, for the running test: also for those who keep Date.now for later. */
function installClock(): (byMs: number) => void {
  let shiftMs = 0;
  const RealDate = Date;
  class JumpingDate extends RealDate {
    constructor(...given: []) {
      if (given.length === 0) super(realNow() + shiftMs);
      else super(...given);
    }
    static override now(): number {
      return realNow() + shiftMs;
    }
  }
  vi.stubGlobal("Date", JumpingDate);
  onTestFinished(() => void vi.unstubAllGlobals());
  return (byMs) => (shiftMs = byMs);
}

/** Honest events get in; a signature that is an hour old, or an hour early, does not. */
async function expectJudgedByRealTime(
  sender: Sender,
  honest: readonly Letter[],
  forged: Letter,
): Promise<void> {
  const answers = await Promise.all(honest.map((letter) => sender.send(letter, { timestamp: seconds() })));
  expect(brief(answers.filter((answer) => answer.status !== 204 || answer.duplicate))).toEqual([]);
  for (const shift of [-3600, 3600]) {
    const { status } = await sender.send(forged, { timestamp: seconds() + shift });
    expect(status, `signed ${shift} seconds from now`).toBe(400);
  }
}

test.each([HOUR_MS, -HOUR_MS])(
  "the database's time does not follow a jump of the process by %i ms",
  (byMs) => {
    const jumpClock = installClock();
    const clock = createDatabaseClock();
    const databaseMs = realNow();
    clock.sample(databaseMs, steadyMs());
    jumpClock(byMs);
    expect(Math.abs(clock.now() - databaseMs)).toBeLessThan(1000);
    expect(Math.abs(clock.skewMs()! - byMs)).toBeLessThan(1000);
  },
);

test.each([HOUR_MS, -HOUR_MS])("accepts honest events after a jump of the process by %i ms", async (byMs) => {
  const { url, pool } = await createDatabase();
  const jumpClock = installClock();
  const server = await startTestServer({ database: url });
  const sender = createSender(server.url);
  const [forged, ...honest] = letters("jump", 61);
  await expectJudgedByRealTime(sender, honest.slice(0, 30), forged!);
  jumpClock(byMs);
  await expectJudgedByRealTime(sender, honest.slice(30), forged!);
  await expectDrained(pool, honest, sender.log);
  const { rows } = await pool.query(
    "select count(*)::int as odd from ukemi.events where abs(extract(epoch from received_at - now())) > 60",
  );
  expect(rows, "received at the database's time").toEqual([{ odd: 0 }]);
});

const library = debianFile("LIBRARIES/faketime/libfaketime.so.1");

test.skipIf(library === undefined)(
  "a server process lives through jumps of its clock of an hour, both ways",
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "ukemi-faketime-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const shift = join(folder, "shift");
    await writeFile(shift, "+0");
    const { url, pool } = await createDatabase();
    const server = await startServerProcess({
      DATABASE_URL: url,
      LD_PRELOAD: library!,
      FAKETIME_TIMESTAMP_FILE: shift,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    });
    onTestFinished(() => void server.kill("SIGKILL"));
    const sender = createSender(server.url);
    const [forged, ...honest] = letters("faketime", 121);
    for (const [step, jump] of ["+0", "+3600", "-3600", "+0"].entries()) {
      await writeFile(shift, jump);
      await expectJudgedByRealTime(sender, honest.slice(step * 30, (step + 1) * 30), forged!);
      // its own log tells that the process did see the other time
      const off = () => Date.parse(/.*"time":"([^"]+)"/s.exec(server.output())![1]!) - realNow();
      await until(() => Math.abs(off() - Number(jump) * 1000) < 60_000, `a log line at ${jump} seconds`);
      await expectTold(pool, sender.log);
    }
    await expectDrained(pool, honest, sender.log);
    expect(await server.kill("SIGTERM")).toBe(0);
  },
);
