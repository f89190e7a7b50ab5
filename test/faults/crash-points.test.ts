// A crash exactly here: at every named place the process dies with SIGKILL, and what is left behind is judged.
import { expect, onTestFinished, test } from "vitest";
import { CRASH_POINTS, type CrashPoint } from "../../src/crash-point.ts";
import { createDatabase } from "../support/database.ts";
import { acknowledged, expectDrained, expectTold, readKept } from "../support/judge.ts";
import { createSender, letters } from "../support/sender.ts";
import { startServerProcess, type ServerProcess } from "../support/server.ts";

/** Places that lie between the commit and the answer: something must be stored that the client was not told of. */
const STORED_UNTOLD: readonly CrashPoint[] = ["inbox.after_commit", "server.before_answer"];

// those of the worker: work-crash-points.test.ts
const PASSES = CRASH_POINTS.filter((point) => /^(?:inbox|server)\./.test(point)).flatMap((point) =>
  // the first pass, and a later one, when something has been answered already
  (point.startsWith("inbox") ? [1, 2] : [1, 12]).map((pass) => [point, pass] as const),
);

test.each(PASSES)("keeps its word through a crash at %s, pass %i", async (point, pass) => {
  const { url: database, pool } = await createDatabase();
  const all = letters(`${point}${pass}`, 30);
  const crashing = await start({ DATABASE_URL: database, UKEMI_CRASH_AT: `${point}:${pass}` });
  const sender = createSender(crashing.url);
  await Promise.all(all.map((letter) => sender.send(letter)));
  // two lanes may take all 30 in one batch each: go on until it has died
  for (const letter of all) if (crashing.child.signalCode === null) await sender.send(letter);
  await crashing.kill("SIGCONT");
  expect(crashing.child.signalCode, "died at the crash point").toBe("SIGKILL");

  const kept = await expectTold(pool, sender.log);
  const told = new Set(acknowledged(sender.log).map((answer) => answer.eventId));
  const untold = [...kept.keys()].filter((eventId) => !told.has(eventId));
  if (STORED_UNTOLD.includes(point)) expect(untold.length, "stored, not told").toBeGreaterThan(0);
  if (point === "inbox.before_commit" && pass === 1) expect(kept.size).toBe(0);
  if (point === "server.after_answer") expect(told.size, "told, then crashed").toBeGreaterThan(0);

  const again = await start({ DATABASE_URL: database });
  const answers = await Promise.all(all.map((letter) => sender.send(letter, { url: again.url })));
  const duplicates = answers.filter((answer) => answer.duplicate).map((answer) => answer.eventId);
  expect(duplicates.toSorted(), "duplicate means: it was stored before").toEqual([...kept.keys()].toSorted());
  await expectDrained(pool, all, sender.log);
  expect((await readKept(pool)).size).toBe(30);
});

async function start(env: Record<string, string>): Promise<ServerProcess> {
  const server = await startServerProcess(env);
  onTestFinished(() => void server.kill("SIGKILL"));
  return server;
}
