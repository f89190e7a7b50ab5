// A worker that dies, or stops being heard of: another has its jobs within seconds, and what it began leaves no trace.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { proxyDatabase } from "../support/proxied.ts";
import { until } from "../support/until.ts";
import { storeElsewhere, untilDrained } from "../support/work.ts";
import {
  createWorkplace,
  eventIds,
  expectAllDone,
  expectWrittenOnce,
  noteClock,
  recoveriesOf,
  type Note,
  type WorkerProcess,
  type Workplace,
} from "../support/worker-process.ts";

const TAKE_OVER_MS_MAX = 8000;

/** Resolves when the worker's handlers of all these events stand at the gate, having written. */
async function untilHeld(place: Workplace, worker: WorkerProcess, events: readonly string[]): Promise<void> {
  await until(
    () => notesOf(place, worker, "wrote").length === events.length,
    "the worker's handlers to have written",
  );
}

function notesOf(place: Workplace, worker: WorkerProcess, wanted: string): Note[] {
  return place.notes().filter(({ what, pid }) => what === wanted && pid === worker.pid);
}

/** How long after a time each event began in the worker, in milliseconds. */
function begunAfter(place: Workplace, worker: WorkerProcess, from: number): number[] {
  return notesOf(place, worker, "begin")
    .filter(({ at }) => at >= from)
    .map(({ at }) => at - from)
    .toSorted((a, b) => a - b);
}

test.each([
  ["default settings", {}],
  ["leases of ten minutes", { leaseMs: 600_000 }],
  ["workers that hardly ever look by themselves", { pollMs: 10_000 }],
])("runs a killed worker's ten jobs elsewhere within 5 s, with %s", async (_, ukemi) => {
  const place = await createWorkplace(await createDatabase());
  const { url, pool } = place;
  const held = eventIds(10, () => "_held");
  await storeElsewhere(url, held); // before it starts: nobody tells it of them
  const dying = await place.start({ ukemi, gate: true });
  await untilHeld(place, dying, held);
  const living = await place.start({ ukemi });

  const killedAt = noteClock();
  await dying.kill("SIGKILL");
  const jobs = await untilDrained(pool, 60_000);
  const after = begunAfter(place, living, killedAt);
  console.log(`taken over after ${after[0]} ms (the first) to ${after.at(-1)} ms (the tenth)`);
  expect(after).toHaveLength(10);
  expect(after.at(-1)).toBeLessThan(TAKE_OVER_MS_MAX);
  expect(recoveriesOf(jobs)).toBe("1: 10");
  await expectAllDone(pool, held);
  await expectWrittenOnce(place, held);
});

test("runs a killed worker's job elsewhere within 5 s also where the others are in the middle of long handlers", async () => {
  const place = await createWorkplace(await createDatabase());
  const { url, pool } = place;
  const dying = await place.start({ ukemi: { concurrency: 1 }, gate: true });
  await storeElsewhere(url, ["evt_1_held"]);
  await untilHeld(place, dying, ["evt_1_held"]);
  const living = await place.start({ gate: true });
  await storeElsewhere(url, ["evt_2_held"]); // the other one is full
  await untilHeld(place, living, ["evt_2_held"]);

  const killedAt = noteClock();
  await dying.kill("SIGKILL");
  const begun = () => begunAfter(place, living, killedAt);
  await until(() => begun().length > 0, "the take-over", 2 * TAKE_OVER_MS_MAX).catch(() => {}); // judged below
  const after = begun()[0] ?? Infinity;
  console.log(`taken over after ${after} ms beside a handler that goes on`);
  place.openGate();
  const jobs = await untilDrained(pool);
  expect(recoveriesOf(jobs)).toBe("0: 1, 1: 1");
  await expectAllDone(pool, ["evt_1_held", "evt_2_held"]);
  await expectWrittenOnce(place, ["evt_1_held", "evt_2_held"]);
  expect(after).toBeLessThan(TAKE_OVER_MS_MAX);
});

test("writes nothing of a worker that was stopped past its lease, and lets it work on when it wakes up", async () => {
  const place = await createWorkplace(await createDatabase());
  const { url, pool } = place;
  const ukemi = { leaseMs: 3000 };
  const held = eventIds(5, () => "_held");
  const sleeping = await place.start({ ukemi, gate: true });
  await storeElsewhere(url, held);
  await untilHeld(place, sleeping, held);
  const living = await place.start({ ukemi });

  const stoppedAt = noteClock();
  sleeping.child.kill("SIGSTOP");
  const jobs = await untilDrained(pool);
  const after = begunAfter(place, living, stoppedAt);
  console.log(`taken over after ${after[0]} ms to ${after.at(-1)} ms, with a lease of ${ukemi.leaseMs} ms`);
  expect(after.at(-1)).toBeLessThan(ukemi.leaseMs + TAKE_OVER_MS_MAX);
  expect(recoveriesOf(jobs)).toBe("1: 5");

  sleeping.child.kill("SIGCONT");
  place.openGate();
  const ofSleeping = (wanted: string) => notesOf(place, sleeping, wanted);
  await until(() => ofSleeping("awake").length === 5, "its handlers to go on");
  await until(() => ofSleeping("refused").length === 5, "its handlers to be refused");
  expect(ofSleeping("late"), "written after the lease was lost").toEqual([]);
  await expectAllDone(pool, held);
  await expectWrittenOnce(place, held);
  const writers = await pool.query("select pid from written union select pid from late");
  expect(writers.rows).toEqual([{ pid: living.pid }]);

  expect(await living.kill("SIGTERM")).toBe(0);
  const more = eventIds(5, () => "_ms5", 10);
  await storeElsewhere(url, more);
  await untilDrained(pool);
  await expectAllDone(pool, [...held, ...more]);
  expect(
    ofSleeping("end")
      .map(({ event }) => event)
      .toSorted(),
  ).toEqual(more.toSorted());
  console.log(`it registered ${sleeping.registrations()} times`);
  expect(await sleeping.kill("SIGTERM")).toBe(0);
});

test("writes nothing of a worker whose network was silent past its lease, also when all arrives in the end", async () => {
  const place = await createWorkplace(await createDatabase());
  const { url, pool } = place;
  const { url: through, proxy } = await proxyDatabase(url);
  const ukemi = { leaseMs: 3000 };
  const held = eventIds(5, () => "_held");
  const cutOff = await place.start({ ukemi, gate: true, env: { DATABASE_URL: through } });
  await storeElsewhere(url, held);
  await untilHeld(place, cutOff, held);
  const living = await place.start({ ukemi });

  const silentAt = noteClock();
  await proxy.set("black hole");
  place.openGate(); // its handlers go on, and what they write hangs in the network
  await until(() => notesOf(place, cutOff, "awake").length === 5, "its handlers to go on");
  const jobs = await untilDrained(pool);
  const after = begunAfter(place, living, silentAt);
  console.log(`taken over after ${after[0]} ms to ${after.at(-1)} ms, with a lease of ${ukemi.leaseMs} ms`);
  expect(after.at(-1)).toBeLessThan(ukemi.leaseMs + TAKE_OVER_MS_MAX);
  expect(recoveriesOf(jobs)).toBe("1: 5");

  await proxy.set("pass");
  expect(await living.kill("SIGTERM")).toBe(0);
  const more = eventIds(5, () => "_ms5", 10);
  await storeElsewhere(url, more);
  await untilDrained(pool); // by the one that was cut off
  await expectAllDone(pool, [...held, ...more]);
  await expectWrittenOnce(place, [...held, ...more]);
  expect((await pool.query("select from late")).rowCount, "written after the lease was lost").toBe(0);
  const { rows } = await pool.query("select event from written where pid = $1 order by event", [cutOff.pid]);
  expect(rows.map((row) => String(row.event))).toEqual(more.toSorted());
  console.log(`it registered ${cutOff.registrations()} times`);
  expect(await cutOff.kill("SIGTERM")).toBe(0);
});
