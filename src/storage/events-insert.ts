// The statement that stores a batch: events, bodies, the jobs of every subscription that fits, outcomes where nothing is to do.

/** Slots that a worker of this process offers. Nothing may overtake: not a pause, not a job that is due already. */
const OPEN_QUEUES = `
open_queues as materialized (
  select o.queue, o.slots
  from unnest($22::text[], $23::int4[]) as o (queue, slots)
  where $24::bool
    or not exists (select from ukemi.queues q where q.name = o.queue and q.paused)
    and not exists (
      select from ukemi.jobs j
      where j.queue = o.queue and j.state = 'ready' and j.recoveries = 0 and j.subscription = any($28::text[])
    )
),`;

/** Only those that the worker has handlers for count against its slots. */
const PLACES = `,
    row_number() over (
      partition by s.queue, s.name = any($28::text[]) order by s.priority desc, a.arrival, s.name
    ) as place,
    count(*) over (partition by a.id) as siblings`;

const READY = `
    case when w.key is null then 'ready' else 'waiting' end, null::timestamptz, null::timestamptz, null::uuid, null::uuid
  from wanted w`;

const CLAIMED = `
    case when c.claimed then 'running' when w.key is null then 'ready' else 'waiting' end,
    case when c.claimed then w.received_at end,
    case when c.claimed then w.received_at + $27::int4 * interval '1 ms' end,
    case when c.claimed then $26::uuid end,
    case when c.claimed then $25::uuid end
  from wanted w
  left join open_queues o on o.queue = w.queue
  cross join lateral (
    select coalesce(w.place <= o.slots and w.key is null and w.name = any($28::text[]), false) as claimed
  ) as c`;

/** A short row for each, for there may be hundreds. */
const TOLD = `(
    select json_agg(
      json_build_array(r.id::text, r.queue, r.subscription, r.event, r.tenant, r.max_attempts, w.siblings) order by r.id
    )
    from routed r
    join wanted w on w.event = r.event and w.name = r.subscription
    where r.state = 'running'
  )`;

/** Between the parts of a text that stands for a list: no identifier contains it. */
export const SEPARATOR = "\u001F";

/**
 * The statement. Rows come sorted by their identity, and are inserted in that order: two lanes that insert the same ids in
 * opposite order would deadlock. With `offered`, jobs may be inserted as claimed by a worker that has offered its slots.
 */
const insert = (offered: boolean) => `
with settings as materialized (
  -- both end with the transaction: a session's settings would be lost, or leak, behind a transaction pooler
  select
    -- a commit that is not flushed (and, with a standby, not replicated) must not be acknowledged; never weaken remote_apply
    case when current_setting('synchronous_commit') in ('off', 'local')
      then set_config('synchronous_commit', 'on', true) end as durable,
    -- somebody else's uncommitted insert of the same event must not hold up its neighbours
    set_config('lock_timeout', $20::text, true) as patience
),
moment as materialized (
  select ukemi.now() as at
),
arrived as materialized (
  select a.*, moment.at as received_at
  from settings, moment, unnest( -- the settings first: they must hold before the first row is inserted
    $1::uuid[], $2::text[], $3::text[], $4::bool[], $5::text[], $6::text[], $7::text[], $8::timestamptz[],
    $9::text[], $10::text[], $11::text[], $12::bytea[], $13::int4[], $14::bytea[], $15::text[], $16::text[],
    $17::text[], $18::text[], $19::int4[]
  ) as a (
    id, source, account, livemode, event_id, type, tenant, occurred_at,
    secret_fingerprint, request_id, traceparent, body_sha256, body_bytes, body, headers, skip,
    ref_kinds, ref_ids, arrival
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
${offered ? OPEN_QUEUES : ""}
wanted as materialized (
  select
    s.queue, s.name, a.id as event, a.tenant, s.priority, s.max_attempts, s.policy, s.ordered, a.received_at, a.arrival,
    case
      when s.key_by = 'tenant' then a.tenant
      when s.key_by is not null then (
        -- one tenant's key never holds up another's
        select coalesce(a.tenant || '/', '') || min(r.ref)
        from unnest(string_to_array(a.ref_kinds, '${SEPARATOR}'), string_to_array(a.ref_ids, '${SEPARATOR}')) as r (kind, ref)
        where r.kind = s.key_by
      )
    end as key
    ${offered ? PLACES : ""}
  from added a
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
    ${offered ? CLAIMED : READY}
  order by w.arrival -- ids in the order of arrival: it is the order of ordered keys
  returning id, queue, subscription, event, tenant, key, state, max_attempts
),
outcomes as (
  insert into ukemi.event_outcomes (event, status, error_message, processed_at)
  select id, case when skip is null then 'unrouted' else 'skipped' end, skip, received_at
  from added
  where skip is not null or id not in (select event from routed)
)
select
  extract(epoch from moment.at) * 1000 as now_ms,
  -- only where one was there before
  case when (select count(*) from stored) < cardinality($1::uuid[]) then ukemi.find_events($5, $2, $3, $4) end as found,
  -- ready those without a key, waiting those with one
  (select json_agg(distinct jsonb_build_array(queue, key)) from routed where state <> 'running') as open,
  ${offered ? TOLD : "null"} as claimed
from moment`;

/** Stores events. */
export const INSERT = insert(false);

/** Stores events; their jobs may be claimed by the worker that offers slots. */
export const INSERT_OFFERED = insert(true);
