// One event that the database refuses must not take its neighbours with it, nor vanish.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { expectDrained, expectTold, waitingEvents } from "../support/judge.ts";
import { startTestServer } from "../support/in-process.ts";
import { lockEvents } from "../support/lock.ts";
import { createSender, letters } from "../support/sender.ts";
import { until } from "../support/until.ts";

test("refuses the one poisonous event of a batch of 50, and stores the other 49", async () => {
  const { url, pool } = await createDatabase();
  const [plug, ...batch] = letters("batch", 51);
  const poison = batch[23]!;
  await pool.query(`
    create function public.refuse_poison() returns trigger language plpgsql as $$
    begin
      if new.event_id = '${poison.eventId}' then raise exception 'poison'; end if;
      return new;
    end $$;
    create trigger poison before insert on ukemi.events for each row execute function public.refuse_poison()`);
  const server = await startTestServer({ database: url, lanes: 1, commitDeadlineMs: 8000 });
  const sender = createSender(server.url);

  // while the only lane waits with the plug for a lock, the 50 gather: they are the next batch
  const lock = await lockEvents(url);
  const plugged = sender.send(plug!);
  await until(async () => (await waitingForLocks()) === 1, "the lane waits for the lock");
  const answers = Promise.all(batch.map((letter) => sender.send(letter)));
  await until(async () => (await waitingEvents(server.url)) === 51, "the other 50 wait behind it");
  await lock.release();

  expect((await plugged).status).toBe(204);
  const told = await answers;
  expect(told.filter((answer) => answer.status === 204)).toHaveLength(49);
  const refused = told.filter((answer) => answer.status !== 204);
  expect(refused).toMatchObject([{ eventId: poison.eventId, status: 503, retryAfter: expect.any(String) }]);
  // refused with the batch, with each half it was in, and by itself: it did sit among the others, and was found quickly
  const faults = server.lines().filter((line) => line.msg === "storing received events failed");
  expect(faults.length).toBeGreaterThan(2);
  expect(faults.length).toBeLessThanOrEqual(7);
  const kept = await expectTold(pool, sender.log);
  expect(kept.size).toBe(50);
  expect(kept.has(poison.eventId)).toBe(false);

  const quarantined =
    "select reason, diagnosis, convert_from(body_sample, 'UTF8') as body from ukemi.rejections";
  await until(async () => (await pool.query(quarantined)).rows.length > 0, "the poison in quarantine");
  expect((await pool.query(quarantined)).rows).toEqual([
    {
      reason: "store_refused",
      diagnosis: expect.stringContaining("P0001"),
      body: poison.body.slice(0, 4096),
    },
  ]);

  await pool.query("drop trigger poison on ukemi.events");
  expect(await sender.send(poison)).toMatchObject({ status: 204, duplicate: false });
  await expectDrained(pool, [plug!, ...batch], sender.log);

  async function waitingForLocks(): Promise<number> {
    const { rows } = await pool.query<{ waiting: number }>(
      `select count(*)::int as waiting
       from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows[0]!.waiting;
  }
});
