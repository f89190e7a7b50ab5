// Group commit by hand: the same rows of the same tables (event, body, job), with every column that Ukemi fills, their indexes and
// checks, many deliveries to a commit, and nothing else. No outcomes, no subscriptions, no slots, no limits, no quarantine, no logs.
import { createHash, randomUUID } from "node:crypto";
import pg from "pg";
import { keptHeaders } from "../../src/inbox/headers.ts";
import { fingerprint } from "../../src/sources/signature.ts";
import { SEPARATOR } from "../../src/storage/events-insert.ts";
import { uuidv7 } from "../../src/storage/ids.ts";
import { asBuffer, BYTEA, each, INT, TEXT, TIMESTAMPTZ, UUID } from "../../src/storage/message.ts";
import type { Verified } from "./verify.ts";

const LANES = 2;
const BATCH_MAX = 256;

const SECRET_FINGERPRINT = fingerprint(process.env.BENCH_SECRET!);
const REF_KINDS = ["payment_intent", "customer"].join(SEPARATOR);

const INSERT = `
with arrived as materialized (
  select * from unnest(
    $1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::bytea[], $8::int4[], $9::bytea[],
    $10::text[]
  ) as a (id, event_id, type, occurred_at, request_id, ref_ids, sha, bytes, body, headers)
),
stored as (
  insert into ukemi.events (
    id, source, account, livemode, event_id, type, received_at, occurred_at,
    secret_fingerprint, request_id, body_sha256, body_bytes, ref_kinds, ref_ids
  )
  select
    id, 'stripe', '', false, event_id, type, now(), occurred_at,
    $11::text, request_id, sha, bytes, string_to_array($12::text, '${SEPARATOR}'), string_to_array(ref_ids, '${SEPARATOR}')
  from arrived
  order by event_id
  on conflict on constraint events_identity do nothing
  returning id, received_at
),
bodies as (
  insert into ukemi.event_bodies (event, received_at, body, headers)
  select id, received_at, body, headers from stored join arrived using (id)
)
insert into ukemi.jobs (queue, kind, subscription, event, state, max_attempts, policy, run_at, created_at)
select 'default', 'handler', 'stripe/payment_intent.succeeded', id, 'ready', 4, 'quick', received_at, received_at
from stored`;

interface Waiting extends Verified {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Keeps deliveries. */
export interface ByHand {
  /** Resolves when the delivery is committed. */
  keep(verified: Verified): Promise<void>;
  end(): Promise<void>;
}

export async function keepByHand(): Promise<ByHand> {
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
          ...[
            each(UUID, batch, () => uuidv7(now)),
            each(TEXT, batch, ({ event }) => event.id),
            each(TEXT, batch, ({ event }) => event.type),
            each(TIMESTAMPTZ, batch, ({ event }) => new Date(event.created * 1000)),
            each(TEXT, batch, () => randomUUID()),
            each(TEXT, batch, ({ event: { data } }) =>
              [data.object.id, data.object.customer].join(SEPARATOR),
            ),
            each(BYTEA, batch, ({ body }) => createHash("sha256").update(body).digest()),
            each(INT, batch, ({ body }) => body.length),
            each(BYTEA, batch, ({ body }) => body),
            each(TEXT, batch, ({ headers }) => keptHeaders(headers)),
          ].map(asBuffer),
          SECRET_FINGERPRINT,
          REF_KINDS,
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

  return {
    keep: (verified) =>
      new Promise((resolve, reject) => {
        waiting.push({ ...verified, resolve, reject });
        commitNext();
      }),
    end: async () => void (await Promise.all(clients.map((client) => client.end()))),
  };
}
