// Storing events without HTTP, for tests of the store itself.
import { createHash } from "node:crypto";
import { storeEvents, type NewEvent, type StoredBatch } from "../../src/storage/events.ts";
import { uuidv7 } from "../../src/storage/ids.ts";
import { connect, type Connection } from "../../src/storage/postgres.ts";

export const LIMITS = { connectTimeoutMs: 5000, statementTimeoutMs: 10_000, lockTimeoutMs: 5000 };

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
