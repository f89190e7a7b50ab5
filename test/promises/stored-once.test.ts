// Promise 1 and 3: a 2xx means committed, and an event is stored once however often it is sent.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { deliver } from "../support/deliver.ts";
import { startTestServer } from "../support/in-process.ts";

test("stores an event with its body, headers and refs before it answers 204", async () => {
  const { url, pool } = await createDatabase();
  const server = await startTestServer({ database: url });
  const told = await deliver(server.url, "evt_first");
  expect(told).toMatchObject({ status: 204, duplicate: false });
  const { rows } = await pool.query(`
    select e.id, e.event_id, e.type, e.source, e.origin, e.livemode, length(b.body) = e.body_bytes as whole,
      sha256(b.body) = e.body_sha256 as intact, b.headers::json ->> 'content-type' as content_type,
      (select count(*)::int from ukemi.refs_of(e.id)) as refs
    from ukemi.events e join ukemi.event_bodies b on b.event = e.id and b.received_at = e.received_at`);
  expect(rows).toEqual([
    {
      id: told.messageId,
      event_id: "evt_first",
      type: "payment_intent.succeeded",
      source: "stripe",
      origin: "webhook",
      livemode: false,
      whole: true,
      intact: true,
      content_type: "application/json",
      refs: expect.any(Number),
    },
  ]);
  expect(rows[0]!.refs).toBeGreaterThan(0);
});

test("answers 500 concurrent deliveries of one event with 204, stores one, and calls the rest duplicates", async () => {
  const { url, pool } = await createDatabase();
  const server = await startTestServer({ database: url });
  const told = await Promise.all(Array.from({ length: 500 }, () => deliver(server.url, "evt_same")));
  expect(new Set(told.map((answer) => answer.status))).toEqual(new Set([204]));
  expect(told.filter((answer) => !answer.duplicate)).toHaveLength(1);
  expect(new Set(told.map((answer) => answer.messageId)).size).toBe(1);
  const { rows } = await pool.query("select count(*)::int as events from ukemi.events");
  expect(rows).toEqual([{ events: 1 }]);
});
