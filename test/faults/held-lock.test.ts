// Another session holds an uncommitted insert of the same event: only that event waits.
import { expect, onTestFinished, test } from "vitest";
import { storeEvents } from "../../src/storage/events.ts";
import { connect, type Connection } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { brief, expectDrained } from "../support/judge.ts";
import { startTestServer } from "../support/in-process.ts";
import { createSender, inParallel, letters, type Answered, type Letter } from "../support/sender.ts";
import { LIMITS, newEvent } from "../support/store.ts";

const DEADLINE_MS = 4000;
/** A lock is waited for 50 ms with the batch and with each half of it; the rest is room for a busy machine. */
const NEIGHBOUR_MS_MAX = 3000;

const isSlow = (other: Answered) => other.status !== 204 || other.durationMs > NEIGHBOUR_MS_MAX;

/** Stores the letter in a transaction that stays open. */
async function hold(url: string, letter: Letter): Promise<{ session: Connection; id: string }> {
  const session = await connect(url, LIMITS);
  onTestFinished(() => session.end());
  await session.query("begin");
  const { events } = await storeEvents(session, [
    newEvent(letter.eventId, { livemode: false, body: Buffer.from(letter.body) }),
  ]);
  return { session, id: events[0]!.id };
}

test("answers the others in the meantime, and the held one as a duplicate after the other commits", async () => {
  const { url, pool } = await createDatabase();
  const server = await startTestServer({ database: url, commitDeadlineMs: DEADLINE_MS });
  const sender = createSender(server.url);
  const [held, ...others] = letters("held", 101);
  const { session, id } = await hold(url, held!);

  const answer = sender.send(held!);
  await inParallel(others, 8, (letter) => sender.send(letter));
  const during = [...sender.log];
  expect(during, "the held one still waits, the others do not").toHaveLength(100);
  expect(brief(during.filter(isSlow))).toEqual([]);
  await session.query("commit");
  expect(await answer).toMatchObject({ status: 204, duplicate: true, messageId: id });
  await expectDrained(pool, [held!, ...others], sender.log);
});

test("answers the held one with 503 at the deadline, and takes it in once the other has rolled back", async () => {
  const { url, pool } = await createDatabase();
  const server = await startTestServer({ database: url, commitDeadlineMs: DEADLINE_MS });
  const sender = createSender(server.url);
  const [held, ...others] = letters("rolled", 21);
  const { session } = await hold(url, held!);

  // all at once: the held one sits in a batch with the others
  const answers = await Promise.all([held!, ...others].map((letter) => sender.send(letter)));
  expect(answers[0]).toMatchObject({ status: 503, retryAfter: expect.any(String) });
  expect(answers[0]!.durationMs).toBeGreaterThan(DEADLINE_MS - 100);
  expect(answers[0]!.durationMs).toBeLessThan(DEADLINE_MS + 10_000);
  expect(brief(answers.slice(1).filter(isSlow))).toEqual([]);
  await session.query("rollback");
  // new, or a duplicate of its own first try: that statement got its lock when the other session let go
  expect(await sender.send(held!)).toMatchObject({ status: 204 });
  await expectDrained(pool, [held!, ...others], sender.log);
});

test("lets no number of held events in a batch push the others past their deadline", async () => {
  const { url, pool } = await createDatabase();
  const server = await startTestServer({ database: url, commitDeadlineMs: DEADLINE_MS });
  const sender = createSender(server.url);
  const held = letters("many", 6);
  const others = letters("beside", 20);
  const sessions = await Promise.all(held.map((letter) => hold(url, letter)));

  const blocked = Promise.all(held.map((letter) => sender.send(letter)));
  const beside = await Promise.all(others.map((letter) => sender.send(letter)));
  expect(brief(beside.filter((other) => other.status !== 204))).toEqual([]);
  await Promise.all(sessions.map(({ session }) => session.query("rollback")));
  await blocked;
  await inParallel(held, 6, (letter) => sender.sendUntilTold(letter));
  await expectDrained(pool, [...held, ...others], sender.log);
});

test("answers 200 neighbours of a held event in time although every commit is slow", async () => {
  const { url, pool, name } = await createDatabase();
  // each commit waits 40 ms before it is flushed
  await pool.query(`alter database ${name} set commit_delay = 40000`);
  await pool.query(`alter database ${name} set commit_siblings = 0`);
  const server = await startTestServer({ database: url, commitDeadlineMs: DEADLINE_MS });
  const sender = createSender(server.url);
  const [held, ...others] = letters("slow", 201);
  const { session } = await hold(url, held!);

  const blocked = sender.send(held!);
  const beside = await Promise.all(others.map((letter) => sender.send(letter)));
  expect(brief(beside.filter((other) => other.status !== 204))).toEqual([]);
  await session.query("rollback");
  await blocked;
  await sender.sendUntilTold(held!);
  await expectDrained(pool, [held!, ...others], sender.log);
});
