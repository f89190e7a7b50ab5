// What is kept of each try: enough to understand it afterwards, and nothing secret.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Pool } from "../../src/storage/postgres.ts";
import { createDatabase } from "../support/database.ts";
import { makeUkemi, storeElsewhere, untilDrained } from "../support/work.ts";

const TYPE = "payment_intent.succeeded";
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const HANDLER_MS = 300;

class CardDeclined extends Error {
  override readonly name = "CardDeclined";
}

const attemptsOf = async (pool: Pool) =>
  (await pool.query("select number, outcome, error_class from ukemi.attempts order by id")).rows;

test("a failed try is kept with its class, message, stack, duration, worker, trace and times", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  ukemi.on(
    "stripe",
    TYPE,
    async function declineTheCard() {
      await sleep(HANDLER_MS);
      throw new CardDeclined("declined for jane@example.com with sk_live_abcdef1234567890");
    },
    { retry: { retries: 0, delaysMs: [] } },
  );
  await ukemi.work();
  await storeElsewhere(url, ["evt_1"], { traceparent: `00-${TRACE}-b7ad6b7169203331-01` });
  const [job] = await untilDrained(pool);
  const worker = await pool.query<{ id: string }>("select id from ukemi.workers");
  const { rows } = await pool.query<{ error_stack: string; duration_ms: number; [column: string]: unknown }>(
    `select a.job, a.number, a.outcome, a.error_class, a.error_message, a.error_stack, a.duration_ms, a.worker,
       a.trace_id, a.started_at >= e.received_at and a.ended_at > a.started_at and a.ended_at <= ukemi.now() as in_order
     from ukemi.attempts a, ukemi.events e`,
  );
  expect(rows).toHaveLength(1);
  const { error_stack, duration_ms, ...rest } = rows[0]!;
  expect(rest).toEqual({
    job: job!.id,
    number: 1,
    outcome: "dead",
    error_class: "CardDeclined",
    error_message: "declined for [address] with [key]",
    worker: worker.rows[0]!.id,
    trace_id: TRACE,
    in_order: true,
  });
  expect(error_stack).toContain("declined for [address] with [key]");
  expect(error_stack).toMatch(/at .*declineTheCard.*attempts\.test\.ts/);
  expect(error_stack).not.toContain("jane@example.com");
  expect(error_stack).not.toContain("sk_live_");
  // a timer may fire a little early; a busy machine may be late
  expect(duration_ms).toBeGreaterThan(HANDLER_MS * 0.9);
  expect(duration_ms).toBeLessThan(HANDLER_MS + 10_000);
});

test.each(["with tx", "without tx"])("a first success writes no try, %s", async (how) => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url);
  ukemi.on("stripe", TYPE, async ({ tx }) => {
    if (how === "with tx") await tx.query("select 1");
  });
  await ukemi.work();
  await storeElsewhere(url, ["evt_1", "evt_2", "evt_3"]);
  const jobs = await untilDrained(pool);
  expect(jobs.map(({ state, attempt }) => [state, attempt])).toEqual(jobs.map(() => ["done", 1]));
  expect(await attemptsOf(pool)).toEqual([]);
});

test.each(["with tx", "without tx"])(
  "a success after a retry writes one try that is done, %s",
  async (how) => {
    const { url, pool } = await createDatabase();
    const { ukemi } = makeUkemi(url);
    ukemi.on(
      "stripe",
      TYPE,
      async ({ tx, job }) => {
        if (how === "with tx") await tx.query("select 1");
        if (job.attempt === 1) throw new TypeError("not at first");
        await sleep(HANDLER_MS);
      },
      { retry: { retries: 1, delaysMs: [10] } },
    );
    await ukemi.work();
    await storeElsewhere(url, ["evt_1"], { traceparent: `00-${TRACE}-b7ad6b7169203331-01` });
    expect(await untilDrained(pool)).toMatchObject([{ state: "done", attempt: 2, error_class: null }]);
    expect(await attemptsOf(pool)).toEqual([
      { number: 1, outcome: "retry", error_class: "TypeError" },
      { number: 2, outcome: "done", error_class: null },
    ]);
    const { rows } = await pool.query<{ duration_ms: number; [column: string]: unknown }>(
      `select a.duration_ms, a.trace_id, a.error_message, a.error_stack, a.started_at is not null as started,
       a.worker = w.id as by_worker
     from ukemi.attempts a, ukemi.workers w
     where a.outcome = 'done'`,
    );
    const { duration_ms, ...done } = rows[0]!;
    expect(done).toEqual({
      trace_id: TRACE,
      error_message: null,
      error_stack: null,
      started: true,
      by_worker: true,
    });
    expect(duration_ms).toBeGreaterThan(HANDLER_MS * 0.9);
    expect(duration_ms).toBeLessThan(HANDLER_MS + 10_000);
  },
);
