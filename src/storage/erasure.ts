// Erasing the bodies of one subject, and what was sent because of them: what may name a person goes, that something was
// received and done stays.
import type { JobKey } from "./due.ts";
import { eraseEffects, lockEffects } from "./erasure-effects.ts";
import { HOLDS_NEEDLE, needlesOf, type ErasureFilter } from "./erasure-choice.ts";
import { stopRouting } from "./kept.ts";
import type { Queryable } from "./postgres.ts";

/** Who erases, why, and how far. */
export interface Erasing {
  /** What the audit names: the ref, or the event. */
  readonly subject: string;
  readonly actor: string;
  readonly reason: string;
  /** Also bodies that unfinished and dead jobs need: the former are cancelled, the latter stay dead for good. */
  readonly includeUnfinished: boolean;
}

/** What one batch did. */
export interface Erased {
  /** Events that were not erased before. */
  readonly events: number;
  readonly bodies: number;
  /** Effects whose content was erased. */
  readonly effects: number;
  /** Jobs that were cancelled. */
  readonly cancelled: number;
  /** Events that were left: a handler is at work on them. */
  readonly leftRunning: number;
  /** Events that were left: jobs need their body. */
  readonly leftUnfinished: number;
  /** Keys whose next job must be let run after the commit. */
  readonly keys: readonly JobKey[];
}

// An erasure that waits longer for somebody else's transaction is tried again.
const SETTINGS = `
select set_config('ukemi.retention', 'on', true), set_config('lock_timeout', '2s', true),
  set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`;

/** While it is locked an operation makes no step: it would copy a job's words that it still sees. A step locks in the same order. */
const LOCK_OPERATIONS = `
select o.id
from ukemi.operations o
where o.id in (
  select i.operation
  from ukemi.operation_items i
  join ukemi.jobs j on j.id = i.job
  where j.event = any($1::uuid[])
  union all
  select i.operation
  from ukemi.operation_items i
  join ukemi.effects e on e.job = i.job
  where e.event = any($1::uuid[])
)
order by o.id
for update`;

/**
 * Jobs that are not running cannot be claimed once they are locked. Running ones are not locked: whoever settles them
 * holds other locks already, and would wait for us while we wait for him.
 */
const LOCK = `
select id
from ukemi.jobs
where event = any($1::uuid[]) and state <> 'running'
order by id
for update`;

/** One that is not locked (parameter 2) was running a moment ago, and may run again at any time. */
const STATES = `
select j.event,
  bool_or(j.state = 'running' or not j.id = any($2::bigint[])) as running,
  bool_or(j.state in ('scheduled', 'ready', 'waiting') or (j.state = 'dead' and x.event is null)) as needed,
  count(*) > 1 as siblings
from ukemi.jobs j
left join ukemi.erasures x on x.event = j.event
where j.event = any($1::uuid[])
group by j.event`;

/** The lock under which a job's completion decides what its event comes to. */
const LOCK_OUTCOMES = `
select pg_advisory_xact_lock(hashtextextended('ukemi.outcome' || e.event::text, 0))::text
from (select unnest($1::uuid[]) as event order by 1) as e`;

const CANCEL = `
with cancelled as (
  update ukemi.jobs j
  set state = 'cancelled', finished_at = ukemi.now(), key_held = false, not_yet_since = null
  where j.event = any($1::uuid[]) and j.state in ('scheduled', 'ready', 'waiting')
  returning j.id, j.event, j.queue, j.key, j.subscription, j.tenant
),
audits as (
  insert into ukemi.audit_log (actor, role, action, target, tenant, details)
  select $2::text, 'operator', 'job.cancelled', id::text, tenant,
    jsonb_build_object('reason', $3::text, 'handler', subscription, 'event', event, 'because', 'its body was erased')
  from cancelled
)
select event, queue, key from cancelled`;

/** What an event comes to whose unfinished jobs were cancelled. */
const OUTCOMES = `
insert into ukemi.event_outcomes (event, status, error_message, processed_at)
select event, status, case when status <> 'success' then 'erased' end, ukemi.now()
from (
  select s.event,
    case
      when bool_or(s.state = 'dead') then 'failed'
      when bool_or(s.state = 'done') then 'success'
      else 'skipped'
    end as status
  from ukemi.jobs s
  where s.event = any($1::uuid[])
  group by s.event
) as o
on conflict (event) do update
set status = excluded.status, error_message = excluded.error_message, processed_at = excluded.processed_at`;

/** Words that a handler's error may have taken from the body. What is blank already is left as it is. */
const BLANK = [
  `update ukemi.event_outcomes set error_message = 'erased'
   where event = any($1::uuid[]) and error_message <> 'erased'
   returning event`,
  `update ukemi.jobs set error_message = 'erased'
   where event = any($1::uuid[]) and error_message <> 'erased'
   returning event`,
  `update ukemi.attempts a
   set error_message = case when a.error_message is not null then 'erased' end,
     error_stack = case when a.error_stack is not null then 'erased' end
   from ukemi.jobs j
   where j.event = any($1::uuid[]) and a.job = j.id
     and (a.error_message <> 'erased' or a.error_stack <> 'erased')
   returning j.event`,
  // only of those that died again: the others have words of ours
  `update ukemi.operation_items i
   set message = 'erased'
   from ukemi.jobs j
   where j.event = any($1::uuid[]) and i.job = j.id and i.state = 'dead' and i.message <> 'erased'
   returning j.event`,
];

/** Returns those that were not erased before: each is counted once. */
const MARK = `
insert into ukemi.erasures (event)
select unnest($1::uuid[])
on conflict do nothing
returning event`;

/** One line of the audit for each tenant: nobody reads of another's events. */
const AUDIT = `
insert into ukemi.audit_log (actor, role, action, target, tenant, details)
select $2::text, 'operator', 'bodies.erased', $4::text, e.tenant,
  jsonb_strip_nulls(jsonb_build_object(
    'reason', $3::text,
    'events', count(*) filter (where e.id = any($6::uuid[])),
    'bodies', count(*) filter (where e.id = any($5::uuid[])),
    -- erased before, and found with words or a body once more
    'again', nullif(count(*) filter (where not e.id = any($6::uuid[])), 0)
  ))
from ukemi.events e
where e.id = any($1::uuid[])
group by e.tenant`;

/** Erases the bodies of these events, with the audit; of those erased before, what has come since. Must run in a transaction. */
export async function eraseBodies(
  client: Queryable,
  events: readonly string[],
  erasing: Erasing,
): Promise<Erased> {
  await client.query(SETTINGS);
  // each in a statement of its own: the next one then sees what was being done
  await stopRouting(client);
  await client.query(LOCK_OPERATIONS, [events]);
  const { rows: locked } = await client.query<{ id: string }>(LOCK, [events]);
  const { rows: states } = await client.query<{
    event: string;
    running: boolean;
    needed: boolean;
    siblings: boolean;
  }>(STATES, [events, locked.map((row) => row.id)]);
  const inTheWay = await lockEffects(client, events);
  const running = new Set([...states.flatMap((row) => (row.running ? row.event : [])), ...inTheWay.running]);
  const wanted = [...states.flatMap((row) => (row.needed ? row.event : [])), ...inTheWay.needed];
  const needed = new Set(erasing.includeUnfinished ? [] : wanted.filter((event) => !running.has(event)));
  const ids = events.filter((event) => !running.has(event) && !needed.has(event));
  const left = { leftRunning: running.size, leftUnfinished: needed.size };
  if (ids.length === 0) return { events: 0, bodies: 0, effects: 0, cancelled: 0, ...left, keys: [] };
  const { rows: newly } = await client.query<{ event: string }>(MARK, [ids]);
  const marked = newly.map((row) => row.event);
  const { actor, reason, subject } = erasing;
  const siblings = states.flatMap((row) => (row.siblings && !running.has(row.event) ? row.event : []));
  await client.query(LOCK_OUTCOMES, [siblings]);
  const { rows: cancelled } = await client.query<{ event: string; queue: string; key: string | null }>(
    CANCEL,
    [ids, actor, reason],
  );
  if (cancelled.length > 0) await client.query(OUTCOMES, [[...new Set(cancelled.map((row) => row.event))]]);
  const blanked = await blankWords(client, ids);
  const gone = await deleteBodies(client, ids);
  const effects = await eraseEffects(client, ids, erasing);
  const touched = [...new Set([...marked, ...gone, ...blanked, ...effects.events])];
  if (touched.length > 0) await client.query(AUDIT, [touched, actor, reason, subject, [...gone], marked]);
  return {
    events: marked.length,
    bodies: gone.size,
    effects: effects.count,
    cancelled: cancelled.length,
    ...left,
    keys: cancelled.flatMap(({ queue, key }) => (key === null ? [] : [{ queue, key }])),
  };
}

/** Returns the events that had words. */
async function blankWords(client: Queryable, events: readonly string[]): Promise<Set<string>> {
  const blanked = new Set<string>();
  for (const statement of BLANK) {
    const { rows } = await client.query<{ event: string }>(statement, [events]);
    for (const { event } of rows) blanked.add(event);
  }
  return blanked;
}

/** Deletes until nothing is left: a row that somebody moves meanwhile is seen in its new place only by the next statement. */
async function deleteBodies(client: Queryable, events: readonly string[]): Promise<Set<string>> {
  const gone = new Set<string>();
  for (let left = true; left;) {
    const { rows } = await client.query<{ event: string }>(
      "delete from ukemi.event_bodies where event = any($1::uuid[]) returning event",
      [events],
    );
    for (const { event } of rows) gone.add(event);
    const { rowCount } = await client.query(
      "select from ukemi.event_bodies where event = any($1::uuid[]) limit 1",
      [events],
    );
    left = rowCount === 1;
  }
  return gone;
}

/** Removes refused requests that contain the id, with the audit. Must run in a transaction. Returns how many. */
export async function eraseRejections(
  client: Queryable,
  filter: ErasureFilter,
  { actor, reason, subject }: Erasing,
): Promise<number> {
  const { rowCount } = await client.query(`delete from ukemi.rejections r where ${HOLDS_NEEDLE}`, [
    needlesOf(filter),
  ]);
  if (!rowCount) return 0;
  await client.query(
    `insert into ukemi.audit_log (actor, role, action, target, details)
     values ($1, 'operator', 'rejections.erased', $2, jsonb_build_object('reason', $3::text, 'rejections', $4::int))`,
    [actor, subject, reason, rowCount],
  );
  return rowCount;
}
