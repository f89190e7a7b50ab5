// Storing what was received: one durable statement for many events, with the jobs they cause.
import { boolArray, byteaArray, intArray, textArray, timestamptzArray, uuidArray } from "./arrays.ts";
import type { Job, JobEvent } from "./claim.ts";
import type { JobKey } from "./due.ts";
import type { Keyring, StoredContent } from "./keyring.ts";
import type { Connection } from "./postgres.ts";
import { REVIVABLE, reviveJobs } from "./revive.ts";

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
  /** Jobs that were inserted as claimed by the worker that offered slots. */
  readonly claimed: readonly Job[];
  /** Queues in which jobs became ready for whoever comes first. */
  readonly ready: readonly string[];
  /** Keys whose jobs wait to be promoted. */
  readonly waiting: readonly JobKey[];
  /** How many dead jobs these deliveries brought back. */
  readonly revived: number;
}

/** Slots of a worker in this process: jobs may be inserted as claimed by it. */
export interface SlotOffer {
  readonly worker: string;
  /** Made before the first try: where the commit is unknown, what was claimed is given back by it. */
  readonly token: string;
  readonly leaseMs: number;
  readonly handlers: readonly string[];
  /** Free slots by queue. */
  readonly slots: ReadonlyMap<string, number>;
  /** True where the jobs must be claimed whatever waits before them: their handlers run inside the transaction. */
  readonly always?: boolean;
  /** How long another transaction that stores the same event is waited for. */
  readonly lockTimeoutMs?: number;
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
    set_config('lock_timeout', $27::text, true) as patience
),
moment as materialized (
  select ukemi.now() as at
),
arrived as materialized (
  select a.*
  from settings, unnest( -- the settings first: they must hold before the first row is inserted
    $1::uuid[], $2::text[], $3::text[], $4::bool[], $5::text[], $6::text[], $7::text[], $8::timestamptz[],
    $9::text[], $10::text[], $11::text[], $12::bytea[], $13::int4[], $14::bytea[], $15::text[], $16::text[]
  ) with ordinality as a (
    id, source, account, livemode, event_id, type, tenant, occurred_at,
    secret_fingerprint, request_id, traceparent, body_sha256, body_bytes, body, headers, skip, place
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
  insert into ukemi.event_bodies (event, received_at, body, headers, key_id)
  select id, received_at, body, headers, $28::text
  from stored join arrived using (id)
),
refs as (
  insert into ukemi.event_refs (event, kind, ref)
  select r.event, r.kind, r.ref
  from unnest($17::uuid[], $18::text[], $19::text[]) as r (event, kind, ref)
  join stored on stored.id = r.event
  on conflict do nothing
),
open_queues as materialized (
  -- slots that a worker of this process offers. Nothing may overtake: not a pause, not a job that is due already
  select o.queue, o.slots
  from unnest($20::text[], $21::int4[]) as o (queue, slots)
  where $22::bool
    or not exists (select from ukemi.queues q where q.name = o.queue and q.paused)
    and not exists (
      select from ukemi.jobs j
      where j.queue = o.queue and j.state = 'ready' and j.recoveries = 0 and j.subscription = any($26::text[])
    )
),
wanted as materialized (
  select
    s.queue, s.name, a.id as event, a.tenant, s.priority, s.max_attempts, s.policy, s.ordered, stored.received_at,
    case
      when s.key_by = 'tenant' then a.tenant
      when s.key_by is not null then (
        -- one tenant's key never holds up another's
        select coalesce(a.tenant || '/', '') || min(r.ref)
        from unnest($17::uuid[], $18::text[], $19::text[]) as r (event, kind, ref)
        where r.event = a.id and r.kind = s.key_by
      )
    end as key,
    a.place as arrival,
    -- only those that the worker has handlers for count against its slots
    row_number() over (
      partition by s.queue, s.name = any($26::text[]) order by s.priority desc, a.place, s.name
    ) as place
  from stored
  join arrived a using (id)
  join ukemi.subscriptions s on s.active and s.source = a.source and a.type like s.type_like
  where a.skip is null
),
routed as (
  insert into ukemi.jobs (
    queue, kind, subscription, event, tenant, key, ordered, priority, max_attempts, policy, run_at, created_at,
    state, started_at, lease_until, lease_token, worker
  )
  select
    w.queue, 'handler', w.name, w.event, w.tenant, w.key, w.ordered, w.priority, w.max_attempts, w.policy,
    w.received_at, w.received_at,
    case when c.claimed then 'running' when w.key is null then 'ready' else 'waiting' end,
    case when c.claimed then w.received_at end,
    case when c.claimed then w.received_at + $25::int4 * interval '1 ms' end,
    case when c.claimed then $24::uuid end,
    case when c.claimed then $23::uuid end
  from wanted w
  left join open_queues o on o.queue = w.queue
  cross join lateral (
    select coalesce(w.place <= o.slots and w.key is null and w.name = any($26::text[]), false) as claimed
  ) as c
  order by w.arrival -- ids in the order of arrival: it is the order of ordered keys
  returning id, queue, subscription, event, tenant, key, state, max_attempts
),
outcomes as (
  insert into ukemi.event_outcomes (event, status, error_message, processed_at)
  select id, case when skip is null then 'unrouted' else 'skipped' end, skip, received_at
  from stored join arrived using (id)
  where skip is not null or not exists (select from routed where routed.event = stored.id)
)
select
  extract(epoch from moment.at) * 1000 as now_ms,
  array(select id::text from stored) as stored,
  coalesce((
    select json_agg(json_build_array(id::text, queue, subscription, event, tenant, key, state, max_attempts) order by id)
    from routed
  ), '[]') as routed
from moment`;

const FIND = `
select
  e.id, e.event_id, e.source, e.account, e.livemode,
  exists (select from ukemi.jobs j where j.event = e.id and ${REVIVABLE}) as revivable
from unnest($1::text[], $2::text[], $3::text[], $4::bool[]) as a (event_id, source, account, livemode)
join ukemi.events e using (event_id, source, account, livemode)`;

/** A job that the statement made, as it is told: a short row, for there may be hundreds. */
type RoutedRow = [
  id: string,
  queue: string,
  handler: string,
  event: string,
  tenant: string | null,
  key: string | null,
  state: "ready" | "waiting" | "running",
  maxAttempts: number,
];

/**
 * Stores a batch in one statement, which is its own transaction unless one is open: when this returns, it is committed.
 * An id that was stored before (also by another process) comes back as a duplicate. The same event stored again
 * under the id it already has is not a duplicate: that is how an unknown commit is resolved. Without a keyring bodies are
 * stored as they came.
 */
export async function storeEvents(
  connection: Pick<Connection, "query" | "pooled">,
  batch: readonly NewEvent[],
  offer?: SlotOffer,
  keyring?: Keyring,
): Promise<StoredBatch> {
  const unique = new Map(batch.toReversed().map((event) => [identityOf(event), event]));
  const events = [...unique.values()].toReversed(); // in the order of arrival
  // sealed in one go: the key is the same for all of them
  const contents = events.map(({ id, body, headers }): StoredContent =>
    keyring ? keyring.seal(id, { body, headers }) : { body, headers, keyId: null },
  );
  const { rows } = await connection.query<{ now_ms: string; stored: string[]; routed: RoutedRow[] }>({
    ...(connection.pooled ? {} : { name: "store events" }),
    text: INSERT,
    values: [...columns(events, contents), ...offerColumns(offer), contents[0]?.keyId ?? null],
  });
  const { now_ms, stored, routed } = rows[0]!;
  const storedIds = new Set(stored);
  const missing = events.filter((event) => !storedIds.has(event.id));
  const earlier = missing.length === 0 ? NONE : await findStored(connection, missing);
  const revived = earlier.revivable.length === 0 ? [] : await reviveJobs(connection, earlier.revivable);
  const databaseMs = Number(now_ms);
  const sorted = sortRouted(routed, events, offer, databaseMs);
  return {
    databaseMs,
    claimed: sorted.claimed,
    waiting: [
      ...sorted.waiting,
      ...revived.flatMap(({ queue, key }) => (key === null ? [] : { queue, key })),
    ],
    revived: revived.reduce((sum, { count }) => sum + count, 0),
    ready: [...new Set([...readyIn(routed), ...revived.map(({ queue }) => queue)])],
    events: batch.map((event) => {
      const identity = identityOf(event);
      const id = earlier.ids.get(identity) ?? unique.get(identity)!.id;
      // retention may remove the earlier event between the two statements: then nothing is stored, and nobody is told so
      if (!earlier.ids.has(identity) && !storedIds.has(id))
        throw new Error("the event stored earlier has gone: try again");
      return { id, duplicate: id !== event.id };
    }),
  };
}

function readyIn(routed: readonly RoutedRow[]): string[] {
  return routed.flatMap(([, queue, , , , , state]) => (state === "ready" ? queue : []));
}

function offerColumns(offer: SlotOffer | undefined): unknown[] {
  return [
    textArray([...(offer?.slots.keys() ?? [])]),
    intArray([...(offer?.slots.values() ?? [])]),
    offer?.always ?? false,
    offer?.worker ?? null,
    offer?.token ?? null,
    offer?.leaseMs ?? 0,
    textArray(offer?.handlers ?? []),
    String(offer?.lockTimeoutMs ?? LOCK_TIMEOUT_MS),
  ];
}

/** What was claimed, with the event it is about, which is still in memory; and what waits for its key. */
function sortRouted(
  routed: readonly RoutedRow[],
  events: readonly NewEvent[],
  offer: SlotOffer | undefined,
  databaseMs: number,
): Pick<StoredBatch, "claimed" | "waiting"> {
  const byId = new Map(events.map((event) => [event.id, event]));
  const waiting = routed.flatMap(([, queue, , , , key, state]) =>
    state === "waiting" ? { queue, key: key! } : [],
  );
  const claimed = routed.flatMap(([id, queue, handler, event, tenant, key, state, maxAttempts]): Job[] => {
    if (state !== "running") return [];
    const siblings = routed.filter((row) => row[3] === event).length;
    const facts = {
      id,
      token: offer!.token,
      queue,
      kind: "handler",
      handler,
      tenant,
      key,
      maxAttempts,
      siblings,
    };
    return [
      {
        ...facts,
        attempt: 0,
        recoveries: 0,
        waitedMs: 0,
        payload: null,
        event: jobEvent(byId.get(event)!, databaseMs),
      },
    ];
  });
  return { claimed, waiting };
}

function jobEvent(event: NewEvent, databaseMs: number): JobEvent {
  const { id, source, account, livemode, eventId, type, traceparent, body, headers } = event;
  return {
    id,
    source,
    account,
    livemode,
    eventId,
    type,
    traceparent,
    body,
    headers,
    receivedAt: new Date(databaseMs),
  };
}

interface StoredEarlier {
  /** By identity. */
  readonly ids: ReadonlyMap<string, string>;
  /** Those with a dead job that a resend brings back. */
  readonly revivable: readonly string[];
}

const NONE: StoredEarlier = { ids: new Map(), revivable: [] };

/** The ids under which these events are stored already, by identity. */
async function findStored(
  connection: Pick<Connection, "query" | "pooled">,
  events: readonly NewEvent[],
): Promise<StoredEarlier> {
  const { rows } = await connection.query<{
    id: string;
    event_id: string;
    source: string;
    account: string;
    livemode: boolean;
    revivable: boolean;
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
  return {
    ids: new Map(rows.map((row) => [identityOf({ ...row, eventId: row.event_id }), row.id])),
    revivable: rows.flatMap((row) => (row.revivable ? row.id : [])),
  };
}

function identityOf(event: Pick<NewEvent, "source" | "account" | "livemode" | "eventId">): string {
  return [event.source, event.account, event.livemode, event.eventId].join("\u0000");
}

function columns(events: readonly NewEvent[], contents: readonly StoredContent[]): Buffer[] {
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
    byteaArray(contents.map((content) => content.body)),
    textArray(contents.map((content) => content.headers)),
    textArray(events.map((event) => event.skip)),
    uuidArray(refs.map((ref) => ref.event)),
    textArray(refs.map((ref) => ref.kind)),
    textArray(refs.map((ref) => ref.id)),
  ];
}
