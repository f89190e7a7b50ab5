// Storing what was received: one durable statement for many events, with the jobs they cause.
import { boolArray, byteaArray, intArray, textArray, timestamptzArray, uuidArray } from "./arrays.ts";
import type { Connection } from "./postgres.ts";

/** An event that was verified and is to be stored. */
export interface NewEvent {
  readonly id: string;
  readonly source: string;
  readonly account: string;
  readonly livemode: boolean;
  readonly eventId: string;
  readonly type: string;
  readonly tenant: string | null;
  readonly occurredAt: Date | null;
  readonly secretFingerprint: string | null;
  readonly requestId: string;
  readonly traceparent: string | null;
  readonly body: Buffer;
  readonly bodySha256: Buffer;
  /** JSON text of the headers worth keeping. */
  readonly headers: string;
  readonly refs: readonly { readonly kind: string; readonly id: string }[];
  /** Why it must not be worked on; null for ordinary events. */
  readonly skip: string | null;
}

/** What became of one event of a batch. */
export interface StoredEvent {
  /** Our id of the event: the given one, or that of the event stored earlier. */
  readonly id: string;
  readonly duplicate: boolean;
}

/** The result of storing a batch. */
export interface StoredBatch {
  /** In the order of the input. */
  readonly events: readonly StoredEvent[];
  /** The database's time in milliseconds since 1970. */
  readonly databaseMs: number;
}

/** How long an insert waits for another transaction; longer is contention, and is tried again apart from the others. */
const LOCK_TIMEOUT_MS = 50;

const INSERT = `
with settings as materialized (
  -- both end with the transaction: a session's settings would be lost, or leak, behind a transaction pooler
  select
    -- a commit that is not flushed (and, with a standby, not replicated) must not be acknowledged; never weaken remote_apply
    case when current_setting('synchronous_commit') in ('off', 'local')
      then set_config('synchronous_commit', 'on', true) end as durable,
    -- somebody else's uncommitted insert of the same event must not hold up its neighbours
    set_config('lock_timeout', '${LOCK_TIMEOUT_MS}', true) as patience
),
moment as materialized (
  select ukemi.now() as at
),
arrived as materialized (
  select a.*
  from settings, unnest( -- the settings first: they must hold before the first row is inserted
    $1::uuid[], $2::text[], $3::text[], $4::bool[], $5::text[], $6::text[], $7::text[], $8::timestamptz[],
    $9::text[], $10::text[], $11::text[], $12::bytea[], $13::int4[], $14::bytea[], $15::text[], $16::text[]
  ) as a (
    id, source, account, livemode, event_id, type, tenant, occurred_at,
    secret_fingerprint, request_id, traceparent, body_sha256, body_bytes, body, headers, skip
  )
),
stored as (
  insert into ukemi.events (
    id, source, account, livemode, event_id, type, tenant, received_at, occurred_at,
    secret_fingerprint, request_id, traceparent, body_sha256, body_bytes
  )
  select
    id, source, account, livemode, event_id, type, tenant, moment.at, occurred_at,
    secret_fingerprint, request_id, traceparent, body_sha256, body_bytes
  from arrived, moment
  -- two lanes that insert the same ids in opposite order would deadlock
  order by event_id, source, account, livemode
  on conflict on constraint events_identity do nothing
  returning id, received_at
),
bodies as (
  insert into ukemi.event_bodies (event, received_at, body, headers)
  select id, received_at, body, headers
  from stored join arrived using (id)
),
refs as (
  insert into ukemi.event_refs (event, kind, ref)
  select r.event, r.kind, r.ref
  from unnest($17::uuid[], $18::text[], $19::text[]) as r (event, kind, ref)
  join stored on stored.id = r.event
  on conflict do nothing
),
routed as (
  insert into ukemi.jobs (
    queue, kind, subscription, event, tenant, state, priority, max_attempts, policy, run_at, created_at
  )
  select
    s.queue, 'handler', s.name, a.id, a.tenant, 'ready', s.priority, s.max_attempts, s.policy,
    stored.received_at, stored.received_at
  from stored
  join arrived a using (id)
  join ukemi.subscriptions s on s.active and s.source = a.source and a.type like s.type_like
  where a.skip is null
  order by a.id
  returning event
),
outcomes as (
  insert into ukemi.event_outcomes (event, status, error_message, processed_at)
  select id, case when skip is null then 'unrouted' else 'skipped' end, skip, received_at
  from stored join arrived using (id)
  where skip is not null or not exists (select from routed where routed.event = stored.id)
)
select stored.id as stored, extract(epoch from moment.at) * 1000 as now_ms
from moment
left join stored on true`;

const FIND = `
select e.id, e.event_id, e.source, e.account, e.livemode
from unnest($1::text[], $2::text[], $3::text[], $4::bool[]) as a (event_id, source, account, livemode)
join ukemi.events e using (event_id, source, account, livemode)`;

/**
 * Stores a batch in one statement, which is its own transaction: when this returns, it is committed.
 * An id that was stored before (also by another process) comes back as a duplicate. The same event stored again
 * under the id it already has is not a duplicate: that is how an unknown commit is resolved.
 */
export async function storeEvents(connection: Connection, batch: readonly NewEvent[]): Promise<StoredBatch> {
  const unique = new Map(batch.toReversed().map((event) => [identityOf(event), event]));
  const events = [...unique.values()];
  const { rows } = await connection.query<{ stored: string | null; now_ms: string }>({
    ...(connection.pooled ? {} : { name: "store events" }),
    text: INSERT,
    values: columns(events),
  });
  const storedIds = new Set(rows.map((row) => row.stored));
  const missing = events.filter((event) => !storedIds.has(event.id));
  const earlier = missing.length === 0 ? new Map<string, string>() : await findStored(connection, missing);
  return {
    databaseMs: Number(rows[0]!.now_ms),
    events: batch.map((event) => {
      const identity = identityOf(event);
      const id = earlier.get(identity) ?? unique.get(identity)!.id;
      // retention may remove the earlier event between the two statements: then nothing is stored, and nobody is told so
      if (!earlier.has(identity) && !storedIds.has(id))
        throw new Error("the event stored earlier has gone: try again");
      return { id, duplicate: id !== event.id };
    }),
  };
}

/** The ids under which these events are stored already, by identity. */
async function findStored(connection: Connection, events: readonly NewEvent[]): Promise<Map<string, string>> {
  const { rows } = await connection.query<{
    id: string;
    event_id: string;
    source: string;
    account: string;
    livemode: boolean;
  }>({
    ...(connection.pooled ? {} : { name: "find events" }),
    text: FIND,
    values: [
      textArray(events.map((event) => event.eventId)),
      textArray(events.map((event) => event.source)),
      textArray(events.map((event) => event.account)),
      boolArray(events.map((event) => event.livemode)),
    ],
  });
  return new Map(rows.map((row) => [identityOf({ ...row, eventId: row.event_id }), row.id]));
}

function identityOf(event: Pick<NewEvent, "source" | "account" | "livemode" | "eventId">): string {
  return [event.source, event.account, event.livemode, event.eventId].join("\u0000");
}

function columns(events: readonly NewEvent[]): Buffer[] {
  const refs = events.flatMap((event) => event.refs.map((ref) => ({ event: event.id, ...ref })));
  return [
    uuidArray(events.map((event) => event.id)),
    textArray(events.map((event) => event.source)),
    textArray(events.map((event) => event.account)),
    boolArray(events.map((event) => event.livemode)),
    textArray(events.map((event) => event.eventId)),
    textArray(events.map((event) => event.type)),
    textArray(events.map((event) => event.tenant)),
    timestamptzArray(events.map((event) => event.occurredAt)),
    textArray(events.map((event) => event.secretFingerprint)),
    textArray(events.map((event) => event.requestId)),
    textArray(events.map((event) => event.traceparent)),
    byteaArray(events.map((event) => event.bodySha256)),
    intArray(events.map((event) => event.body.length)),
    byteaArray(events.map((event) => event.body)),
    textArray(events.map((event) => event.headers)),
    textArray(events.map((event) => event.skip)),
    uuidArray(refs.map((ref) => ref.event)),
    textArray(refs.map((ref) => ref.kind)),
    textArray(refs.map((ref) => ref.id)),
  ];
}
