// Erasing what was sent because of one subject's events: to whom and what goes, that it was sent, when and under which key stays.
import { doubt } from "./effects-begin.ts";
import type { Queryable } from "./postgres.ts";

/** What the effects of these events stand in the way of. Each list names events. */
export interface EffectsInTheWay {
  /** A worker has one in its hands. */
  readonly running: ReadonlySet<string>;
  /** One is unfinished, or can be replayed. */
  readonly needed: ReadonlySet<string>;
}

/** The effect `e`, with its job `j`, may still be carried out, or waits for a person who has to know what it was. */
const NEEDED = `
  (e.state in ('planned', 'sending', 'uncertain', 'held') or e.state = 'failed' and coalesce(j.state = 'dead', false))`;

/** Of the events in parameter 1, with the intents that came again, whichever event decided those. An `or` would walk the ledger. */
const OF_EVENTS = `
  e.id in (
    select d.id from ukemi.effects d where d.event = any($1::uuid[])
    union all
    select r.id
    from ukemi.effects f
    join ukemi.effects r on r.suppressed_by = f.id
    where f.event = any($1::uuid[])
  )`;

/** As workers do: the effect, then its job. */
const LOCK = `select from ukemi.effects e where ${OF_EVENTS} order by e.id for update`;
const LOCK_JOBS = `
select from ukemi.jobs j
where j.id in (select e.job from ukemi.effects e where e.event = any($1::uuid[])) and j.state <> 'running'
order by j.id
for update`;

const STATES = `
select e.event::text,
  bool_or(coalesce(j.state = 'running', false)) as running,
  bool_or(e.erased_at is null and ${NEEDED}) as needed
from ukemi.effects e
left join ukemi.jobs j on j.id = e.job
where e.event = any($1::uuid[])
group by e.event`;

/** Locks the effects of these events and says which are in the way. Must run in a transaction. */
export async function lockEffects(client: Queryable, events: readonly string[]): Promise<EffectsInTheWay> {
  await client.query(LOCK, [events]);
  await client.query(LOCK_JOBS, [events]);
  const { rows } = await client.query<{ event: string; running: boolean; needed: boolean }>(STATES, [events]);
  return {
    running: new Set(rows.flatMap((row) => (row.running ? row.event : []))),
    needed: new Set(rows.flatMap((row) => (row.needed && !row.running ? row.event : []))),
  };
}

/** How many effects an erasure would reach, and how many of them have not ended, are under way, or can be replayed. */
export async function countEffects(
  client: Queryable,
  events: readonly string[],
): Promise<Record<"effects" | "unfinished" | "running" | "dead", number>> {
  const { rows } = await client.query<Record<"effects" | "unfinished" | "running" | "dead", number>>(
    `select count(*)::int as effects,
       count(*) filter (where e.event = any($1::uuid[]) and e.ended_at is null)::int as unfinished,
       count(*) filter (where j.state = 'running')::int as running,
       count(*) filter (where e.event = any($1::uuid[]) and e.state = 'failed' and j.state = 'dead')::int as dead
     from ukemi.effects e
     left join ukemi.jobs j on j.id = e.job
     where e.erased_at is null and ${OF_EVENTS}`,
    [events],
  );
  return rows[0]!;
}

const WORDS = "what it held was erased";

/** What was never begun is cancelled, and with it what waits for it; of the rest a person must still say whether it happened. */
const END = `
with recursive unfinished as (
  select e.id from ukemi.effects e
  where e.event = any($1::uuid[]) and e.state = 'planned' and e.uncertainties = 0
  union
  select e.id from ukemi.effects e join unfinished u on e.after = u.id where e.state = 'planned'
),
ended as (
  update ukemi.effects e
  set state = 'cancelled', ended_at = ukemi.now(), reason = '${WORDS}'
  from unfinished u
  where e.id = u.id
  returning e.id, e.kind, e.tenant, e.job
),
left_open as (
  update ukemi.effects e
  set state = 'held', reason = '${WORDS}, and nobody knows whether it happened'
  where e.event = any($1::uuid[]) and (e.state = 'uncertain' or e.state = 'planned' and e.uncertainties > 0)
  returning e.id, e.kind, e.tenant, e.job
),
jobs as (
  update ukemi.jobs j
  set state = 'cancelled', finished_at = ukemi.now(), death = null
  where j.id in (select job from ended union select job from left_open) and j.state in ('ready', 'scheduled', 'dead')
)
insert into ukemi.audit_log (actor, role, action, target, tenant, details)
select $2::text, 'operator', x.action, x.id::text, x.tenant, jsonb_build_object('reason', $3::text, 'because', '${WORDS}')
from (
  select id, tenant, kind || '.cancelled' as action from ended
  union all
  select id, tenant, kind || '.held' from left_open
) as x
order by x.id`;

/** What a mail server said when it took a mail stays: it is how the sending is proved, and names nobody. */
const ERASE = `
with erased as (
  update ukemi.effects e
  set intent = '{}', target_sealed = null, erased_at = ukemi.now(),
    target = case when e.kind in ('email', 'http') then 'erased' else e.target end,
    receipt = case when e.kind in ('email', 'usage') then e.receipt end,
    reason = case when e.reason is not null and e.state in ('failed', 'held') then 'erased' else e.reason end
  where ${OF_EVENTS} and e.erased_at is null
  returning e.id, e.event, e.job
),
calls as (
  update ukemi.effect_attempts a
  set answer = null, error_message = case when a.error_message is not null then 'erased' end
  from erased
  where a.effect = erased.id
),
jobs as (
  update ukemi.jobs j
  set error_message = 'erased'
  from erased
  where j.id = erased.job and j.error_message is not null
),
tries as (
  update ukemi.attempts a
  set error_message = case when a.error_message is not null then 'erased' end,
    error_stack = case when a.error_stack is not null then 'erased' end
  from erased
  where a.job = erased.job
),
items as (
  -- only of those that died again: the others have words of ours
  update ukemi.operation_items i
  set message = 'erased'
  from erased
  where i.job = erased.job and i.state = 'dead' and i.message <> 'erased'
)
select id::text, event::text from erased`;

/** Who erases, and why. */
interface Mandated {
  readonly actor: string;
  readonly reason: string;
}

/** Erases what the effects of these events hold; those that are unfinished end. Must follow lockEffects. Returns how many, and of which events. */
export async function eraseEffects(
  client: Queryable,
  events: readonly string[],
  { actor, reason }: Mandated,
): Promise<{ readonly count: number; readonly events: ReadonlySet<string> }> {
  const { rows: adrift } = await client.query<{ id: string }>(
    "select e.id::text from ukemi.effects e where e.event = any($1::uuid[]) and e.state = 'sending'",
    [events],
  );
  for (const { id } of adrift) await doubt(client, id);
  await client.query(END, [events, actor, reason]);
  const { rows } = await client.query<{ id: string; event: string | null }>(ERASE, [events]);
  const touched = rows.flatMap(({ event }) => (event !== null && events.includes(event) ? event : []));
  return { count: rows.length, events: new Set(touched) };
}
