// A Ukemi that works inside the test's own process, stopped when the test ends.
import { onTestFinished } from "vitest";
import { createLogger } from "../../src/observe/log.ts";
import { stripe } from "../../src/sources/stripe.ts";
import { storeEvents, type NewEvent } from "../../src/storage/events.ts";
import type { Pool } from "../../src/storage/postgres.ts";
import { createUkemi, type Ukemi, type UkemiOptions } from "../../src/ukemi.ts";
import { SECRET } from "./server.ts";
import { newEvent, withConnection } from "./store.ts";
import { until } from "./until.ts";

/** The source of every Ukemi made here. */
const sources = { stripe: stripe({ secrets: [SECRET] }) };

export interface TestUkemi {
  readonly ukemi: Ukemi<typeof sources>;
  /** The log lines so far, parsed. */
  lines(): Record<string, unknown>[];
}

/** Makes one on the database; the test adds handlers and calls work(). */
export function makeUkemi(url: string, options: Partial<UkemiOptions> = {}): TestUkemi {
  const written: string[] = [];
  const ukemi = createUkemi({
    database: url,
    pollMs: 50,
    logger: createLogger("debug", { write: (line) => void written.push(line) }),
    ...options,
    sources,
  });
  onTestFinished(() => ukemi.stop());
  return { ukemi, lines: () => written.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

/** Stores events with these ids as another process would: without a word to any worker here. */
export async function storeElsewhere(
  url: string,
  eventIds: readonly string[],
  changes: Partial<NewEvent> = {},
): Promise<void> {
  const events = eventIds.map((id) =>
    newEvent(id, {
      body: Buffer.from(JSON.stringify({ id, type: changes.type ?? "payment_intent.succeeded" })),
      ...changes,
    }),
  );
  await withConnection(url, (connection) => storeEvents(connection, events));
}

/** A job as it lies in the database. */
export interface JobRow {
  readonly id: string;
  readonly state: string;
  readonly attempt: number;
  readonly recoveries: number;
  readonly death: string | null;
  readonly error_class: string | null;
  readonly error_message: string | null;
  readonly event_id: string | null;
  readonly handler: string;
}

export async function readJobs(pool: Pool): Promise<JobRow[]> {
  const { rows } = await pool.query<JobRow>(`
    select j.id, j.state, j.attempt, j.recoveries, j.death, j.error_class, j.error_message, e.event_id,
      j.subscription as handler
    from ukemi.jobs j
    left join ukemi.events e on e.id = j.event
    order by j.id`);
  return rows;
}

/** Waits until every job has ended: done, dead or cancelled. */
export async function untilDrained(pool: Pool, timeoutMs = 30_000): Promise<JobRow[]> {
  await until(
    async () =>
      (
        await pool.query(
          "select from ukemi.jobs where state in ('scheduled', 'ready', 'waiting', 'running') limit 1",
        )
      ).rowCount === 0,
    "every job to end",
    timeoutMs,
  );
  return readJobs(pool);
}
