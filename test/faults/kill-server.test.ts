// Promise 1 under kill -9: whatever the moment, what was told 2xx is stored, and a patient sender gets everything in.
import { expect, onTestFinished, test } from "vitest";
import { registerSubscription } from "../../src/storage/subscriptions.ts";
import { createDatabase } from "../support/database.ts";
import { acknowledged, expectDrained } from "../support/judge.ts";
import { freePort } from "../support/port.ts";
import { seededRandom } from "../support/seed.ts";
import { createSender, createSignal, inParallel, letters } from "../support/sender.ts";
import { startServerProcess, type ServerProcess } from "../support/server.ts";

const CYCLES = 50;
const EVENTS_PER_CYCLE = 40;
const CONCURRENCY = 16;

test("loses nothing and doubles nothing through 50 kills of the server under load", async () => {
  const random = seededRandom("kill-server");
  const { url: database, pool } = await createDatabase();
  await registerSubscription(pool, { name: "payments", source: "stripe", pattern: "payment_intent.*" });
  const port = String(await freePort());
  const sender = createSender(`http://127.0.0.1:${port}`);
  const all = letters(`kill${random.seed}`, CYCLES * EVENTS_PER_CYCLE);

  let server: ServerProcess | undefined;
  onTestFinished(() => void server?.kill("SIGKILL"));
  let ready = createSignal();
  const sending: Promise<void>[] = [];
  for (let cycle = 0; cycle <= CYCLES; cycle++) {
    server = await startServerProcess({ DATABASE_URL: database, UKEMI_PORT: port });
    const toldBefore = acknowledged(sender.log).length;
    ready.give();
    if (cycle === CYCLES) break; // the last one lives, and takes in what is left
    ready = createSignal();
    const batch = all.slice(cycle * EVENTS_PER_CYCLE, (cycle + 1) * EVENTS_PER_CYCLE);
    sending.push(inParallel(batch, CONCURRENCY, (letter) => sender.sendUntilTold(letter, () => ready.given)));
    const fewest = random.below(EVENTS_PER_CYCLE);
    await sender.when((log) => acknowledged(log).length >= toldBefore + fewest, `${fewest} more 2xx`);
    await new Promise((resolve) => setTimeout(resolve, random.below(8))); // anywhere in a commit, not right after an answer
    await server.kill("SIGKILL");
  }
  await Promise.all(sending);

  const cut = sender.log.filter((answer) => answer.status === 0).length;
  const stored = sender.log.filter((answer) => answer.duplicate).length;
  console.log(`${sender.log.length} tries, ${cut} without an answer, ${stored} of them stored all the same`);
  expect(cut, "a kill that cuts nothing proves nothing").toBeGreaterThan(CYCLES);
  expect(sender.log.filter((answer) => answer.status !== 0 && answer.status !== 204)).toEqual([]);
  await expectDrained(pool, all, sender.log, { jobs: 1 });
  expect(await server?.kill("SIGTERM")).toBe(0);
});
