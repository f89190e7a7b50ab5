// The statement that stores a batch: events, bodies, the jobs of every subscription that fits, outcomes where nothing is to do.

/** Between the parts of a text that stands for a list: no identifier contains it. */
export const SEPARATOR = "\u001F";

/**
 * Nothing may overtake: not a pause, not a job that is due already. One step into an index for each queue: `not exists` would
 * be planned as a list of all jobs that wait, made anew for every commit.
 */
const OPEN_QUEUES = `
  select o.queue
  from unnest($23::text[]) as o (queue)
  where $24::bool
    or (select q.paused from ukemi.queues q where q.name = o.queue) is not true
    and (
      select j.id from ukemi.jobs j
      where j.queue = o.queue and j.state = 'ready' and j.recoveries = 0 and j.subscription = any($25::text[])
      limit 1
    ) is null`;

/** Whoever has a key waits for it. */
const IS_CLAIMED = `
      s.key_by is null and s.name = any(string_to_array(a.takers, '${SEPARATOR}')) and s.queue = any(array(${OPEN_QUEUES}))`;

const READY = `
    case when w.key is null then 'ready' else 'waiting' end, null::timestamptz, null::timestamptz, null::uuid, null::uuid`;

const CLAIMED = `
    case when w.claimed then 'running' when w.key is null then 'ready' else 'waiting' end,
    case when w.claimed then w.received_at end,
    case when w.claimed then w.received_at + $28::int4 * interval '1 ms' end,
    case when w.claimed then $27::uuid end,
    case when w.claimed then $26::uuid end`;

/** A short row for each, for there may be hundreds. */
const TOLD = `
  json_agg(json_build_array(id::text, queue, subscription, event, tenant, max_attempts)) filter (where state = 'running')`;

/**
 * The statement. Rows come sorted by their identity, and are inserted in that order: two lanes that insert the same ids in
 * opposite order would deadlock. With `offered`, jobs may be inserted as claimed by a worker that has offered its slots.
 * Where few come at once it takes as long to make ready as to run: each part of it was weighed.
 */
const insert = (offered: boolean) => `
with settings as materialized (
  -- both end with the transaction: a session's settings would be lost, or leak, behind a transaction pooler
  select
    -- a commit that is not flushed (and, with a standby, not replicated) must not be acknowledged; never weaken remote_apply
    case when current_setting('synchronous_commit') in ('off', 'local')
      then set_config('synchronous_commit', 'on', true) end as durable,
    -- somebody else's uncommitted insert of the same event must not hold up its neighbours
    set_config('lock_timeout', $20::text, true) as patience,
    -- ukemi.now(), without the call
    clock_timestamp() + (select shift from ukemi.clock) as received_at
),
arrived as materialized (
  select a.*, settings.received_at
  from settings, unnest( -- the settings first: they must hold before the first row is inserted
    $1::uuid[], $2::text[], $3::text[], $4::bool[], $5::text[], $6::text[], $7::text[], $8::timestamptz[],
    $9::text[], $10::text[], $11::text[], $12::bytea[], $13::int4[], $14::bytea[], $15::text[], $16::text[],
    $17::text[], $18::text[], $19::int4[]${offered ? ", $22::text[]" : ""}
  ) as a (
    id, source, account, livemode, event_id, type, tenant, occurred_at,
    secret_fingerprint, request_id, traceparent, body_sha256, body_bytes, body, headers, skip,
    ref_kinds, ref_ids, arrival${offered ? ", takers" : ""}
  )
),
stored as (
  insert into ukemi.events (
    id, source, account, livemode, event_id, type, tenant, received_at, occurred_at,
    secret_fingerprint, request_id, traceparent, body_sha256, body_bytes, ref_kinds, ref_ids
  )
  select
    id, source, account, livemode, event_id, type, tenant, received_at, occurred_at,
    secret_fingerprint, request_id, traceparent, body_sha256, body_bytes,
    string_to_array(ref_kinds, '${SEPARATOR}'), string_to_array(ref_ids, '${SEPARATOR}')
  from arrived
  on conflict on constraint events_identity do nothing
  returning id
),
added as materialized (
  select * from arrived where id in (select id from stored)
),
bodies as (
  insert into ukemi.event_bodies (event, received_at, body, headers, key_id)
  select id, received_at, body, headers, $21::text from added
),
routed as (
  insert into ukemi.jobs (
    queue, kind, subscription, event, tenant, key, ordered, priority, max_attempts, policy, run_at, created_at,
    state, started_at, lease_until, lease_token, worker
  )
  select
    w.queue, 'handler', w.name, w.event, w.tenant, w.key, w.ordered, w.priority, w.max_attempts, w.policy,
    w.received_at, w.received_at,
    ${offered ? CLAIMED : READY}
  from (
    select
      s.queue, s.name, a.id as event, a.tenant, s.priority, s.max_attempts, s.policy, s.ordered, a.received_at,
      case when s.key_by is not null then
        ukemi.key_of(
          s.key_by, a.tenant, string_to_array(a.ref_kinds, '${SEPARATOR}'), string_to_array(a.ref_ids, '${SEPARATOR}')
        )
      end as key${offered ? `,${IS_CLAIMED} as claimed` : ""}
    from added a
    join ukemi.subscriptions s on s.active and s.source = a.source and a.type like s.type_like
    where a.skip is null
    order by a.arrival -- ids in the order of arrival: it is the order of ordered keys
  ) as w
  returning id, queue, subscription, event, tenant, key, state, max_attempts
),
outcomes as (
  insert into ukemi.event_outcomes (event, status, error_message, processed_at)
  select id, case when skip is null then 'unrouted' else 'skipped' end, skip, received_at
  from added
  where skip is not null or id not in (select event from routed)
)
select
  extract(epoch from (select received_at from settings)) * 1000 as now_ms,
  -- only where one was there before
  case when (select count(*) from stored) < cardinality($1::uuid[]) then ukemi.find_events($5, $2, $3, $4) end as found,
  -- ready those without a key, waiting those with one
  json_agg(json_build_array(queue, key, event)) filter (where state <> 'running') as open,
  ${offered ? TOLD : "null"} as claimed
from routed`;

/** As it is sent: the server copies the text of a statement each time it runs. */
const sent = (text: string) => text.replaceAll(/--.*$/gm, "").replaceAll(/\s+/g, " ").trim();

/** Stores events. */
export const INSERT = sent(insert(false));

/** Stores events; their jobs may be claimed by the worker that offers slots. */
export const INSERT_OFFERED = sent(insert(true));
