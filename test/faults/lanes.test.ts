// Two writers of the same events at the same time: no deadlock, one row, one answer that says "new".
import { expect, onTestFinished, test } from "vitest";
import { storeEvents } from "../../src/storage/events.ts";
import { connect } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { expectDrained, readKept } from "../support/judge.ts";
import { createSender, inParallel, letters } from "../support/sender.ts";
import { startServerProcess } from "../support/server.ts";
import { LIMITS, newEvent } from "../support/store.ts";

const ROUNDS = 50;

test("stores overlapping batches in opposite order for 50 rounds without a deadlock", async () => {
  const { url, pool } = await createDatabase();
  const [left, right] = await Promise.all([connect(url, LIMITS), connect(url, LIMITS)]);
  onTestFinished(async () => void (await Promise.all([left.end(), right.end()])));
  for (let round = 0; round < ROUNDS; round++) {
    const ids = Array.from({ length: 200 }, (_, index) => `evt_${round}_${index}`);
    const events = ids.map((id) => newEvent(id));
    // the same identities under other ids, backwards: what two processes hold that got the same deliveries
    const reversed = ids.map((id) => newEvent(id)).toReversed();
    const [told, toldReversed] = await Promise.all([storeEvents(left, events), storeEvents(right, reversed)]);
    toldReversed.events.toReversed().forEach((there, index) => {
      const here = told.events[index]!;
      expect(there.id, "both are told the same id").toBe(here.id);
      expect(Number(here.duplicate) + Number(there.duplicate), "one of them is told that it is new").toBe(1);
    });
  }
  const kept = await readKept(pool);
  expect(kept.size).toBe(ROUNDS * 200);
  expect([...kept.values()].filter(({ events, bodies }) => events !== 1 || bodies !== 1)).toEqual([]);
});

test("two servers that get the same 500 events at once store each once and call one answer new", async () => {
  const { url, pool } = await createDatabase();
  const servers = await Promise.all([
    startServerProcess({ DATABASE_URL: url }),
    startServerProcess({ DATABASE_URL: url }),
  ]);
  onTestFinished(() => servers.forEach((server) => void server.kill("SIGKILL")));
  const all = letters("pair", 500);
  const sender = createSender(servers[0].url);
  await Promise.all([
    inParallel(all, 32, (letter) => sender.send(letter, { url: servers[0].url })),
    inParallel(all.toReversed(), 32, (letter) => sender.send(letter, { url: servers[1].url })),
  ]);
  expect(sender.log.filter((answer) => answer.status !== 204)).toEqual([]);
  const fresh = sender.log.filter((answer) => !answer.duplicate).map((answer) => answer.eventId);
  expect(fresh.toSorted()).toEqual(all.map((letter) => letter.eventId).toSorted());
  await expectDrained(pool, all, sender.log);
  // a deadlock that was retried would be told by the log
  expect(servers.map((server) => server.output()).join("")).not.toContain("40P01");
});
