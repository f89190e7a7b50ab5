// SIGTERM: what is under way is answered, what was told is stored, and the process ends in time.
import { expect, onTestFinished, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { acknowledged, brief, expectDrained, expectTold, waitingEvents } from "../support/judge.ts";
import { proxyDatabase } from "../support/proxied.ts";
import { lockEvents } from "../support/lock.ts";
import { createSender, inParallel, letters } from "../support/sender.ts";
import { startServerProcess, type ServerProcess } from "../support/server.ts";
import { until } from "../support/until.ts";

async function start(env: Record<string, string>): Promise<ServerProcess> {
  const server = await startServerProcess(env);
  onTestFinished(() => void server.kill("SIGKILL"));
  return server;
}

test("answers 100 requests that are under way when SIGTERM comes, then ends with 0", async () => {
  const { url, pool } = await createDatabase();
  const server = await start({ DATABASE_URL: url, UKEMI_COMMIT_DEADLINE_MS: "20000" });
  const sender = createSender(server.url);
  const all = letters("drain", 100);
  const lock = await lockEvents(url);
  const answers = Promise.all(all.map((letter) => sender.send(letter)));
  await until(async () => (await waitingEvents(server.url)) === 100, "100 requests under way");
  const exited = server.kill("SIGTERM");
  await until(() => server.output().includes('"msg":"stopping"'), "the server heard it");
  const late = createSender(server.url, { keepAlive: false });
  const refused = async () => (await late.send(letters("late", 1)[0]!)).fault === "ECONNREFUSED";
  await until(refused, "new connections are refused");
  await lock.release();
  expect(brief((await answers).filter((answer) => answer.status !== 204 || answer.duplicate))).toEqual([]);
  const answeredAt = performance.now();
  expect(await exited).toBe(0);
  // idle keep-alive connections must not hold it until the drain time is up
  expect(performance.now() - answeredAt).toBeLessThan(10_000);
  await expectDrained(pool, all, sender.log);
});

test.each([true, false])("loses no answer under load (keep-alive: %s)", async (keepAlive) => {
  const { url, pool } = await createDatabase();
  const server = await start({ DATABASE_URL: url });
  const sender = createSender(server.url, { keepAlive });
  let gone = false;
  function* untilGone() {
    for (const letter of letters(`load${keepAlive}`, 20_000)) {
      if (gone) return;
      yield letter;
    }
  }
  const sending = inParallel(untilGone(), 48, async (letter) => {
    const answer = await sender.send(letter);
    gone ||= answer.fault === "ECONNREFUSED";
  });
  await sender.when((log) => acknowledged(log).length >= 300, "300 answers of 204");
  expect(await server.kill("SIGTERM")).toBe(0);
  await sending;

  const kept = await expectTold(pool, sender.log);
  const told = new Set(acknowledged(sender.log).map((answer) => answer.eventId));
  // a request that was read to its end was stored, and then it was answered: none was dropped on the way
  expect([...kept.keys()].filter((eventId) => !told.has(eventId))).toEqual([]);
  const answered = sender.log.filter((answer) => answer.status !== 0);
  expect(brief(answered.filter((answer) => answer.status !== 204 && answer.status !== 503))).toEqual([]);
  const faults = new Set(sender.log.map((answer) => answer.fault));
  console.log(`${told.size} told 204; faults seen: ${[...faults].filter(Boolean).join(", ")}`);
  expect(gone, "the server went while the load lasted").toBe(true);
});

const AWAY = [
  ["refuse", "busy"],
  ["black hole", "busy"],
  ["black hole", "idle"],
  ["black hole", "with a rejection to keep"],
] as const;

test.each(AWAY)(
  "ends in time when SIGTERM comes and the database meets %s (%s)",
  { timeout: 20_000 },
  async (mode, load) => {
    const { url, pool } = await createDatabase();
    const { url: database, proxy } = await proxyDatabase(url);
    const times = { deadlineMs: 1000, drainTimeoutMs: 2000 };
    const server = await start({
      DATABASE_URL: database,
      UKEMI_COMMIT_DEADLINE_MS: String(times.deadlineMs),
      UKEMI_DRAIN_TIMEOUT_MS: String(times.drainTimeoutMs),
    });
    const sender = createSender(server.url);
    const all = letters("away", 40);
    const [stored, waiting] = [all.slice(0, 20), all.slice(20)];
    await Promise.all(stored.map((letter) => sender.sendUntilTold(letter)));
    await proxy.set(mode);
    const answers = load === "busy" ? waiting.map((letter) => sender.send(letter)) : [];
    await until(async () => (await waitingEvents(server.url)) === answers.length, "they are under way");
    if (load === "with a rejection to keep") {
      expect((await sender.send(waiting[0]!, { timestamp: 1 })).status).toBe(400);
    }
    const stoppedAt = performance.now();
    const exited = server.kill("SIGTERM").then((code) => ({ code, ms: performance.now() - stoppedAt }));
    expect(brief((await Promise.all(answers)).filter((answer) => answer.status !== 503))).toEqual([]);
    const { code, ms } = await exited;
    console.log(`${mode}, ${load}: ended after ${Math.round(ms)} ms`);
    expect(code).toBe(0);
    expect(ms).toBeLessThan(times.deadlineMs + times.drainTimeoutMs + 5000);

    await proxy.set("pass");
    const again = await start({ DATABASE_URL: database });
    await inParallel(all, 8, (letter) => sender.send(letter, { url: again.url }));
    await expectDrained(pool, all, sender.log);
  },
);
