// A database that is there and refuses to write: read-only after a failover, or its disk is full.
import { expect, onTestFinished, test } from "vitest";
import { asAdmin, createDatabase } from "../support/database.ts";
import { expectCivil, expectDrained } from "../support/judge.ts";
import { createSender, inParallel, letters } from "../support/sender.ts";
import { startServerProcess } from "../support/server.ts";

const DEADLINE_MS = 1000;

async function startLoad(name: string) {
  const database = await createDatabase();
  const server = await startServerProcess({
    DATABASE_URL: database.url,
    UKEMI_COMMIT_DEADLINE_MS: String(DEADLINE_MS),
  });
  onTestFinished(() => void server.kill("SIGKILL"));
  const sender = createSender(server.url);
  const all = letters(name, 500);
  const sending = inParallel(all, 16, (letter) => sender.sendUntilTold(letter));
  sending.catch(() => {}); // seen by the test
  await sender.when((log) => log.length >= 50, "50 answers");
  const turnedAway = () =>
    sender.when((log) => log.filter((answer) => answer.status === 503).length >= 32, "32 answers of 503");
  return { ...database, server, sender, all, sending, turnedAway };
}

test("answers 503 while the database is read-only, and drains when it is not", async () => {
  const { name, pool, server, sender, all, sending, turnedAway } = await startLoad("readonly");
  const cutLanes = () =>
    asAdmin((admin) =>
      admin.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and application_name like 'ukemi%'",
        [name],
      ),
    );
  await asAdmin((admin) => admin.query(`alter database ${name} set default_transaction_read_only = on`));
  await cutLanes();
  await turnedAway();
  const ready = await fetch(`${server.url}/readyz`);
  const health = await fetch(`${server.url}/healthz`);
  await asAdmin((admin) => admin.query(`alter database ${name} reset default_transaction_read_only`));
  await cutLanes();
  await sending;
  expectCivil(sender.log, DEADLINE_MS + 1500);
  await expectDrained(pool, all, sender.log);
  expect(health.status).toBe(200);
  expect(ready.status, "a server that cannot store is not ready").toBe(503);
});

test("answers 503 while the disk is full, puts nothing into quarantine, and drains when there is room", async () => {
  const { pool, sender, all, sending, turnedAway } = await startLoad("full");
  await pool.query(`
    create function public.no_room() returns trigger language plpgsql as $$
    begin
      raise exception 'could not extend file: No space left on device' using errcode = 'disk_full';
    end $$;
    create trigger no_room before insert on ukemi.event_bodies for each row execute function public.no_room()`);
  await turnedAway();
  await pool.query("drop trigger no_room on ukemi.event_bodies");
  await sending;
  expectCivil(sender.log, DEADLINE_MS + 1500);
  await expectDrained(pool, all, sender.log);
  const { rows } = await pool.query("select reason from ukemi.rejections");
  expect(rows, "an honest event is not to blame").toEqual([]);
});
