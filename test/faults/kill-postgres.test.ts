// PostgreSQL stopped with `-m immediate` under load, five times: the server stays, answers civilly, and loses nothing.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startEmbedded } from "../../src/storage/embedded/embedded.ts";
import { migrateStore } from "../../src/storage/open.ts";
import { openPool } from "../../src/storage/postgres.ts";
import { acknowledged, expectCivil, expectDrained, expectTold } from "../support/judge.ts";
import { seededRandom } from "../support/seed.ts";
import { createSender, inParallel, letters } from "../support/sender.ts";
import { startServerProcess } from "../support/server.ts";

const DEADLINE_MS = 1000;
const KILLS = 5;
const EVENTS = 3000;

test("survives five crashes of PostgreSQL under load", async () => {
  const random = seededRandom("kill-postgres");
  const data = await mkdtemp(join(tmpdir(), "ukemi-kill-postgres-"));
  onTestFinished(() => rm(data, { recursive: true, force: true }));
  let postgres = await startEmbedded({ data });
  onTestFinished(() => postgres.stop());
  const { url } = postgres;
  await migrateStore(url);
  const pool = openPool(url, { max: 2 });
  onTestFinished(() => pool.end());
  const server = await startServerProcess({
    DATABASE_URL: url,
    UKEMI_COMMIT_DEADLINE_MS: String(DEADLINE_MS),
  });
  onTestFinished(() => void server.kill("SIGKILL"));

  const sender = createSender(server.url);
  const all = letters(`pg${random.seed}`, EVENTS);
  const toldAfter = (count: number) => {
    const goal = acknowledged(sender.log).length + count;
    return sender.when((log) => acknowledged(log).length >= goal, `${count} more 2xx`);
  };
  let kills = 0;
  // the load lasts as long as the faults do: the last letters wait for the last heal
  function* underLoad() {
    for (const [index, letter] of all.entries()) {
      if (index >= EVENTS - 200 && kills < KILLS) throw new Error("the load ended before the faults did");
      yield letter;
    }
  }
  const sending = inParallel(underLoad(), 32, (letter) => sender.sendUntilTold(letter));
  sending.catch(() => {}); // seen below
  for (; kills < KILLS; kills++) {
    await toldAfter(50 + random.below(200));
    const answersBefore = sender.log.length;
    process.kill(postgres.pid, "SIGQUIT");
    await postgres.stop(); // waits for its end
    // every other time it comes back at once; else only after senders have been turned away
    if (kills % 2 === 1) {
      await sender.when(
        (log) => log.slice(answersBefore).filter((answer) => answer.status === 503).length >= 40,
        "40 answers of 503",
      );
    }
    postgres = await startEmbedded({ data });
    expect(postgres.url, "the address stays the same").toBe(url);
    await expectTold(pool, [...sender.log]);
  }
  await sending;

  expectCivil(sender.log, DEADLINE_MS + 1500);
  await expectDrained(pool, all, sender.log);
  const turnedAway = sender.log.filter((answer) => answer.status === 503).length;
  const slowest = Math.round(Math.max(...sender.log.map((answer) => answer.durationMs)));
  console.log(`${sender.log.length} tries, ${turnedAway} times 503, slowest answer ${slowest} ms`);
  expect(turnedAway).toBeGreaterThanOrEqual(80);
  expect(await server.kill("SIGTERM")).toBe(0);
});
