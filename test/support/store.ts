// Storing events without HTTP, for tests of the store itself.
import { createHash } from "node:crypto";
import { storeEvents, type NewEvent, type StoredBatch } from "../../src/storage/events.ts";
import { uuidv7 } from "../../src/storage/ids.ts";
import { connect, type Connection, type Pool } from "../../src/storage/postgres.ts";

export const LIMITS = { connectTimeoutMs: 5000, statementTimeoutMs: 10_000 };

/** An event that is ready to be stored. */
export function newEvent(eventId: string, changes: Partial<NewEvent> = {}): NewEvent {
  const body = changes.body ?? Buffer.from(`{"id":"${eventId}"}`);
  return {
    id: uuidv7(Date.now()),
    source: "stripe",
    account: "",
    livemode: true,
    eventId,
    type: "payment_intent.succeeded",
    tenant: null,
    occurredAt: null,
    secretFingerprint: null,
    requestId: "request",
    traceparent: null,
    body,
    bodySha256: createHash("sha256").update(body).digest(),
    headers: "{}",
    refs: [],
    skip: null,
    ...changes,
  };
}

/** Runs the work on a connection of its own. */
export async function withConnection<T>(
  url: string,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const connection = await connect(url, LIMITS);
  try {
    return await work(connection);
  } finally {
    await connection.end();
  }
}

/** Stores events with these ids in one batch. */
export function storeDirectly(
  url: string,
  eventIds: readonly string[],
  options: { body?: (eventId: string) => Buffer } = {},
): Promise<StoredBatch> {
  const events = eventIds.map((id) => newEvent(id, options.body ? { body: options.body(id) } : {}));
  return withConnection(url, (connection) => storeEvents(connection, events));
}

/** Notes, at every commit of an event, the durability it was committed with; the function tells what was seen. */
export async function watchDurability(
  pool: Pool,
): Promise<() => Promise<{ setting: string; commits: number }[]>> {
  await pool.query(`
    create table seen (setting text);
    create function look() returns trigger language plpgsql as $$
      begin insert into seen values (current_setting('synchronous_commit')); return null; end $$;
    create constraint trigger look after insert on ukemi.events initially deferred
      for each row execute function look()`);
  return async () =>
    (
      await pool.query<{ setting: string; commits: number }>(
        "select setting, count(*)::int as commits from seen group by setting",
      )
    ).rows;
}
