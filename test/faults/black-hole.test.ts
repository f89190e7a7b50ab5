// The network between the server and PostgreSQL goes silent, or is cut while a commit is under way.
import { expect, onTestFinished, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { expectCivil, expectDrained, expectTold, readKept, waitingEvents } from "../support/judge.ts";
import { proxyDatabase } from "../support/proxied.ts";
import { createSender, inParallel, letters } from "../support/sender.ts";
import { startServerProcess } from "../support/server.ts";
import { until } from "../support/until.ts";

const DEADLINE_MS = 1000;

async function startBehindProxy(env: Record<string, string> = {}) {
  const { url, pool } = await createDatabase();
  const { proxy, url: database } = await proxyDatabase(url);
  const server = await startServerProcess({
    DATABASE_URL: database,
    UKEMI_COMMIT_DEADLINE_MS: String(DEADLINE_MS),
    ...env,
  });
  onTestFinished(() => void server.kill("SIGKILL"));
  return { pool, proxy, server, sender: createSender(server.url) };
}

test("answers 200 events in flight by the deadline while the database is silent, then drains", async () => {
  const { pool, proxy, server, sender } = await startBehindProxy();
  const [first, ...rest] = letters("hole", 401);
  await sender.send(first!); // the lanes are connected
  const inFlight = rest.slice(0, 200);
  const after = rest.slice(200);

  proxy.delay(30); // commits take long enough for 200 to be under way
  const answers = Promise.all(inFlight.map((letter) => sender.send(letter)));
  await sender.when((log) => log.length > 1, "the first answer of the 200");
  await proxy.set("black hole");
  const healthAt = performance.now();
  const health = await fetch(`${server.url}/healthz`, { signal: AbortSignal.timeout(2000) });
  expect(health.status, `healthz after ${performance.now() - healthAt} ms`).toBe(200);
  const refused = await Promise.all(after.slice(0, 20).map((letter) => sender.send(letter)));
  expect(refused.map((answer) => answer.status)).toEqual(Array.from({ length: 20 }, () => 503));
  const held = (await answers).filter((answer) => answer.status === 503);
  expectCivil(sender.log, DEADLINE_MS + 1500);
  expect(held.length, "in flight when the line went silent").toBeGreaterThan(0);
  await expectTold(pool, sender.log);

  proxy.delay(0);
  await proxy.set("pass");
  await inParallel(rest, 32, (letter) => sender.sendUntilTold(letter));
  await expectDrained(pool, [first!, ...rest], sender.log);
  const tried = new Set<string>();
  for (const answer of sender.log) {
    if (!tried.has(answer.eventId)) expect(answer.duplicate, "a first try is never a duplicate").toBe(false);
    tried.add(answer.eventId);
  }
  console.log(`${held.length} of 200 were in flight`);
});

test("holds what came while the line was silent, and stores it when it heals before the deadline", async () => {
  const { pool, proxy, server, sender } = await startBehindProxy({ UKEMI_COMMIT_DEADLINE_MS: "8000" });
  const all = letters("pause", 50);
  await sender.send(all[0]!);
  await proxy.set("black hole");
  const answers = Promise.all(all.slice(1).map((letter) => sender.send(letter)));
  await until(async () => (await waitingEvents(server.url)) === 49, "49 events that wait for their commit");
  await proxy.set("pass");
  expect((await answers).map((answer) => [answer.status, answer.duplicate])).toEqual(
    all.slice(1).map(() => [204, false]),
  );
  await expectDrained(pool, all, sender.log);
});

test("resolves a commit whose answer was lost: stored again under the same ids, told as new", async () => {
  const { pool, proxy, sender } = await startBehindProxy({ UKEMI_COMMIT_DEADLINE_MS: "8000" });
  const [first, ...unknown] = letters("unknown", 31);
  await sender.send(first!);
  await proxy.set("lose answers");
  const answers = Promise.all(unknown.map((letter) => sender.send(letter)));
  await until(async () => (await readKept(pool)).size > 1, "a commit that the server has not heard of");
  const committed = [...(await readKept(pool)).keys()].filter((eventId) => eventId !== first!.eventId);
  expect(sender.log, "nobody was told").toHaveLength(1);
  await proxy.set("pass");
  proxy.cut();
  const told = await answers;
  expect(told.filter((answer) => answer.status !== 204 || answer.duplicate)).toEqual([]);
  expect(committed.length).toBeGreaterThan(0);
  await expectDrained(pool, [first!, ...unknown], sender.log);
});

test.each(["reset", "refuse"] as const)(
  "answers 503 while every connection meets %s, then drains",
  async (mode) => {
    const { pool, proxy, sender } = await startBehindProxy();
    const all = letters(mode, 100);
    const sending = inParallel(all, 16, (letter) => sender.sendUntilTold(letter));
    await sender.when((log) => log.some((answer) => answer.status === 204), "the first 204");
    await proxy.set(mode);
    await sender.when(
      (log) => log.filter((answer) => answer.status === 503).length >= 16,
      "16 answers of 503",
    );
    await proxy.set("pass");
    await sending;
    expectCivil(sender.log, DEADLINE_MS + 1500);
    await expectDrained(pool, all, sender.log);
  },
);

test(
  "gets its lanes back when the line goes silent in the middle of connecting",
  { timeout: 20_000 },
  async () => {
    const { pool, proxy, sender } = await startBehindProxy({ UKEMI_LANES: "1" });
    const all = letters("greeting", 20);
    proxy.delay(150);
    const first = sender.send(all[0]!);
    // signed in, and its first question answered, but the answer is still on its way
    await until(async () => {
      const { rows } = await pool.query(
        `select from pg_stat_activity
       where datname = current_database() and application_name = 'ukemi inbox' and query like '%pg_backend_pid%'`,
      );
      return rows.length > 0;
    }, "a lane that has just signed in");
    await proxy.set("black hole");
    expect((await first).status).toBe(503);
    proxy.strand(); // what was open stays silent for ever, as after a failover
    await proxy.set("pass");
    proxy.delay(0);
    await inParallel(all, 8, (letter) => sender.sendUntilTold(letter));
    await expectDrained(pool, all, sender.log);
  },
);

test("gets its lanes back when their connections stay silent for ever", async () => {
  const { pool, proxy, sender } = await startBehindProxy();
  const all = letters("stranded", 100);
  await inParallel(all.slice(0, 20), 8, (letter) => sender.sendUntilTold(letter));
  proxy.strand();
  await inParallel(all.slice(20), 16, (letter) => sender.sendUntilTold(letter));
  expectCivil(sender.log, DEADLINE_MS + 1500);
  await expectDrained(pool, all, sender.log);
});
