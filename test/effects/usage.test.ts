// Records of use by the ledger: many share a call, the meter counts each once, and a bad one fails alone.
import { expect, onTestFinished, test } from "vitest";
import { startApiMeter, type ApiMeterOptions } from "../../src/testing/api-meter.ts";
import { createDatabase } from "../support/database.ts";
import { held } from "../support/held.ts";
import { makeUkemi, untilDrained } from "../support/work.ts";

const BATCH_SIZE = 100;

async function startWorld(options: ApiMeterOptions = {}) {
  const meter = await startApiMeter(options);
  onTestFinished(() => meter.stop());
  const { url, pool } = await createDatabase();
  const { ukemi, lines } = makeUkemi(url, {
    apiMeterUrl: meter.url,
    apiMeterToken: "token",
    apiMeterTenant: "acme",
    usageBatchSize: BATCH_SIZE,
  });
  return { meter, pool, ukemi, lines };
}

const states = async (pool: Awaited<ReturnType<typeof startWorld>>["pool"]) => {
  const { rows } = await pool.query<{ state: string; count: number }>(
    "select state, count(*)::int as count from ukemi.effects group by state order by state",
  );
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
};

test("records that come while the meter is busy share the next call, and each is counted once", async () => {
  const answer = held<undefined>();
  const { meter, pool, ukemi } = await startWorld({
    fault: (call) => (call === 1 ? answer.promise : undefined),
  });
  for (let n = 0; n < 150; n += 1) await ukemi.effects.usage(null, { source_event_id: `u${n}`, amount: 2 });
  expect(await ukemi.effects.usage(null, { source_event_id: "u7", amount: 2 })).toMatchObject({
    suppressed: true,
  });
  await ukemi.work();
  await expect.poll(async () => (await states(pool)).sending, { timeout: 30_000 }).toBe(BATCH_SIZE);
  answer.resolve(undefined);
  await untilDrained(pool);
  expect(meter.records.size).toBe(150);
  expect(meter.calls.flatMap(({ ids }) => ids)).toHaveLength(150);
  expect(Math.max(...meter.calls.map(({ ids }) => ids.length))).toBeGreaterThanOrEqual(BATCH_SIZE / 2);
  expect(await states(pool)).toEqual({ done: 150, suppressed: 1 });
});

test("a lost answer is asked for again: the meter knows the records", async () => {
  const { meter, pool, ukemi } = await startWorld({
    fault: (call) => (call === 1 ? { loseAnswer: true } : undefined),
  });
  await ukemi.effects.usage(null, { source_event_id: "a", amount: 1 });
  await ukemi.work();
  await untilDrained(pool);
  expect(meter.records.size).toBe(1);
  expect(await states(pool)).toEqual({ done: 1 });
});

test("one that the meter refuses fails alone", async () => {
  const { meter, pool, ukemi } = await startWorld({
    fault: (_, ids) => (ids.includes("bad") ? { status: 422 } : undefined),
  });
  for (const id of ["a", "b", "bad", "c", "d"]) await ukemi.effects.usage(null, { source_event_id: id });
  await ukemi.work();
  await untilDrained(pool);
  expect(meter.records.size).toBe(4);
  expect(await states(pool)).toEqual({ done: 4, failed: 1 });
});

test("a refused token closes the meter, and nothing is lost", async () => {
  let isLocked = true;
  const { meter, pool, ukemi, lines } = await startWorld({
    fault: () => (isLocked ? { status: 401 } : undefined),
  });
  await ukemi.effects.usage(null, { source_event_id: "a" });
  await ukemi.work();
  await expect.poll(() => lines().some(({ alert }) => alert === "destination_closed")).toBe(true);
  isLocked = false;
  await pool.query("update ukemi.clock set shift = '1 hour'");
  await untilDrained(pool);
  expect(meter.records.size).toBe(1);
});

test("a record that is none is refused where it is intended", async () => {
  const { ukemi } = await startWorld();
  await expect(ukemi.effects.usage(null, { source_event_id: " " })).rejects.toThrow("source_event_id");
});

test("another number than was sent is told once for the call, and marked on every record", async () => {
  const { pool, ukemi, lines } = await startWorld({
    fault: () => ({ status: 200, body: '{"inserted":1,"updated":0}' }),
  });
  for (const id of ["a", "b", "c"]) await ukemi.effects.usage(null, { source_event_id: id });
  await ukemi.work();
  await untilDrained(pool);
  const { rows } = await pool.query<{ receipt: string; reason: string | null }>(
    "select receipt, reason from ukemi.effects where state = 'done'",
  );
  const calls = new Map<number, number>();
  for (const { receipt } of rows) {
    const { records, mismatched } = JSON.parse(receipt) as { records: number; mismatched?: boolean };
    expect(mismatched ?? false).toBe(records !== 1);
    calls.set(records, (calls.get(records) ?? 0) + 1);
  }
  // as many as calls whose count was another
  const odd = [...calls]
    .filter(([records]) => records > 1)
    .reduce((sum, [records, seen]) => sum + seen / records, 0);
  expect(odd).toBeGreaterThan(0);
  expect(rows.filter(({ reason }) => reason !== null)).toHaveLength(odd);
  const told = lines().filter(({ msg }) => msg === "an effect is done, but oddly");
  expect(told).toHaveLength(odd);
  expect(told[0]).toMatchObject({ remark: expect.stringContaining("1 inserted and 0 updated of") });
});
