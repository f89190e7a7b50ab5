// The limit: the same rows of the same tables (event, body, job), with their indexes and checks, many deliveries to a commit,
// and nothing else. No refs, no outcomes, no subscriptions, no slots, no limits, no quarantine, no logs.
import { createHash } from "node:crypto";
import pg from "pg";
import { byteaArray, intArray, textArray, uuidArray } from "../../src/storage/arrays.ts";
import { uuidv7 } from "../../src/storage/ids.ts";
import { serve, type Verified } from "./verify.ts";

const LANES = 2;
const BATCH_MAX = 256;

const INSERT = `
with arrived as materialized (
  select * from unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::int4[], $6::bytea[])
    as a (id, event_id, type, sha, bytes, body)
),
stored as (
  insert into ukemi.events (id, source, event_id, type, received_at, body_sha256, body_bytes)
  select id, 'stripe', event_id, type, now(), sha, bytes from arrived
  order by event_id
  on conflict on constraint events_identity do nothing
  returning id, received_at
),
bodies as (
  insert into ukemi.event_bodies (event, received_at, body, headers)
  select id, received_at, body, '{}' from stored join arrived using (id)
)
insert into ukemi.jobs (queue, kind, subscription, event, state, max_attempts, policy, run_at, created_at)
select 'default', 'handler', 'stripe/payment_intent.succeeded', id, 'ready', 4, 'quick', received_at, received_at
from stored`;

interface Waiting extends Verified {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const waiting: Waiting[] = [];
const clients = await Promise.all(
  Array.from({ length: LANES }, async () => {
    const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
    await client.connect();
    return client;
  }),
);
const idle = [...clients];

function commitNext(): void {
  const client = waiting.length > 0 ? idle.pop() : undefined;
  if (!client) return;
  const batch = waiting.splice(0, BATCH_MAX);
  const now = Date.now();
  client
    .query({
      name: "insert",
      text: INSERT,
      values: [
        uuidArray(batch.map(() => uuidv7(now))),
        textArray(batch.map(({ event }) => event.id)),
        textArray(batch.map(({ event }) => event.type)),
        byteaArray(batch.map(({ body }) => createHash("sha256").update(body).digest())),
        intArray(batch.map(({ body }) => body.length)),
        byteaArray(batch.map(({ body }) => body)),
      ],
    })
    .then(
      () => batch.forEach(({ resolve }) => resolve()),
      (error: unknown) => batch.forEach(({ reject }) => reject(error)),
    )
    .finally(() => {
      idle.push(client);
      commitNext();
    });
}

await serve(
  (verified) =>
    new Promise<void>((resolve, reject) => {
      waiting.push({ ...verified, resolve, reject });
      commitNext();
    }),
  async () => void (await Promise.all(clients.map((client) => client.end()))),
);
