// Sealing bodies that were stored in plain: each row is replaced by its sealed self, some hundred in a transaction.
import type { Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";

/** Who seals, why, with what, and where the batch before ended. */
export interface Sealing {
  readonly keyring: Keyring;
  readonly after: string;
  readonly actor: string;
  readonly reason: string;
}

/** One batch of sealed bodies. */
export interface SealedBatch {
  readonly sealed: number;
  /** Where the next batch begins; undefined where this was the last. */
  readonly next: string | undefined;
}

const BATCH_BODIES = 500;
const BATCH_BYTES = 16 * 1024 * 1024;

/** How many bodies lie in plain. */
export async function countPlain(client: Queryable): Promise<number> {
  const { rows } = await client.query<{ count: string }>(
    "select count(*) as count from ukemi.event_bodies where key_id is null",
  );
  return Number(rows[0]!.count);
}

/** The next ones, as many as fit into memory, and always one. */
const CHOOSE = `
select event
from (
  select event, octets, sum(octets) over (order by event) as so_far
  from (
    select event, octet_length(body) as octets
    from ukemi.event_bodies
    where key_id is null and event > $1::uuid
    order by event
    limit ${BATCH_BODIES}
  ) as next
) as counted
where so_far - octets <= ${BATCH_BYTES}
order by event`;

const LOCK = `
select event, body, headers
from ukemi.event_bodies
where event = any($1::uuid[]) and key_id is null
order by event
for update`;

/** Rows cannot be updated, also under the flag: they are deleted and inserted again. */
const REPLACE = `
with gone as (
  delete from ukemi.event_bodies
  where event = any($1::uuid[]) and key_id is null
  returning event, received_at
),
kept as (
  insert into ukemi.event_bodies (event, received_at, body, headers, key_id)
  select g.event, g.received_at, s.body, s.headers, s.key_id
  from gone g
  join unnest($1::uuid[], $2::bytea[], $3::text[], $4::text[]) as s (event, body, headers, key_id) using (event)
)
insert into ukemi.audit_log (actor, role, action, details)
select $5::text, 'operator', 'bodies.sealed', jsonb_build_object('reason', $6::text, 'bodies', count(*))
from gone`;

/** Seals one batch, with its audit. Must run in a transaction. */
export async function sealBatch(
  client: Queryable,
  { keyring, after, actor, reason }: Sealing,
): Promise<SealedBatch> {
  await client.query(
    "select set_config('ukemi.retention', 'on', true), set_config('lock_timeout', '2s', true)",
  );
  const { rows: chosen } = await client.query<{ event: string }>(CHOOSE, [after]);
  if (chosen.length === 0) return { sealed: 0, next: undefined };
  const { rows } = await client.query<{ event: string; body: Buffer; headers: string }>(LOCK, [
    chosen.map((row) => row.event),
  ]);
  const sealed = rows.map((row) => ({ event: row.event, ...keyring.seal(row.event, row) }));
  if (sealed.length > 0) {
    await client.query(REPLACE, [
      sealed.map((row) => row.event),
      sealed.map((row) => row.body),
      sealed.map((row) => row.headers),
      sealed.map((row) => row.keyId),
      actor,
      reason,
    ]);
  }
  return { sealed: sealed.length, next: chosen.at(-1)!.event };
}
