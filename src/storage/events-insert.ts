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

interface Form {
  /** Jobs may be inserted as claimed by a worker that has offered its slots. */
  readonly offered: boolean;
  /** There is one event: its columns come as they are, not as arrays, of which each would be opened and read. */
  readonly lone: boolean;
}

/** The parameters that each event has, in their order, with their types. */
const COLUMNS = [
  ["id", 1, "uuid"],
  ["source", 2, "text"],
  ["account", 3, "text"],
  ["livemode", 4, "bool"],
  ["event_id", 5, "text"],
  ["type", 6, "text"],
  ["tenant", 7, "text"],
  ["occurred_at", 8, "timestamptz"],
  ["secret_fingerprint", 9, "text"],
  ["request_id", 10, "text"],
  ["traceparent", 11, "text"],
  ["body_sha256", 12, "bytea"],
  ["body_bytes", 13, "int4"],
  ["body", 14, "bytea"],
  ["headers", 15, "text"],
  ["skip", 16, "text"],
  ["ref_kinds", 17, "text"],
  ["ref_ids", 18, "text"],
  ["arrival", 19, "int4"],
] as const;
const TAKERS = ["takers", 22, "text"] as const;

/** The settings first: they must hold before the first row is inserted. */
function arrived({ offered, lone }: Form): string {
  const columns = offered ? [...COLUMNS, TAKERS] : COLUMNS;
  if (lone) {
    const values = columns.map(([name, place, type]) => `$${place}::${type} as ${name}`);
    return `select ${values.join(", ")}, settings.received_at from settings`;
  }
  const arrays = columns.map(([, place, type]) => `$${place}::${type}[]`);
  const names = columns.map(([name]) => name);
  return `
  select a.*, settings.received_at
  from settings, unnest(${arrays.join(", ")}) as a (${names.join(", ")})`;
}

/**
 * The statement. Rows come sorted by their identity, and are inserted in that order: two lanes that insert the same ids in
 * opposite order would deadlock. Where few come at once it takes as long to make ready as to run: each part of it was weighed.
 */
const insert = ({ offered, lone }: Form) => `
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
arrived as materialized (${arrived({ offered, lone })}
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
  case when (select count(*) from stored) < ${lone ? "1" : "cardinality($1)"} then ukemi.find_events(${lone ? "array[$5], array[$2], array[$3], array[$4]" : "$5, $2, $3, $4"}) end as found,
  -- ready those without a key, waiting those with one
  json_agg(json_build_array(queue, key, event)) filter (where state <> 'running') as open,
  ${offered ? TOLD : "null"} as claimed
from routed`;

/** As it is sent: the server copies the text of a statement each time it runs. */
const sent = (text: string) => text.replaceAll(/--.*$/gm, "").replaceAll(/\s+/g, " ").trim();

const EVENTS = { name: "store events", text: sent(insert({ offered: false, lone: false })) };
const EVENT = { name: "store an event", text: sent(insert({ offered: false, lone: true })) };
const EVENTS_OFFERED = { name: "store events for slots", text: sent(insert({ offered: true, lone: false })) };
const EVENT_OFFERED = { name: "store an event for slots", text: sent(insert({ offered: true, lone: true })) };

/** The statement that stores so many events. */
export function insertFor({ offered, lone }: Form): { readonly name: string; readonly text: string } {
  if (lone) return offered ? EVENT_OFFERED : EVENT;
  return offered ? EVENTS_OFFERED : EVENTS;
}
