// Bringing dead letters back: a sender's resend does it once, an operator as often as they like.
import { REFS } from "./dead-filter.ts";
import type { Queryable } from "./postgres.ts";

/** A dead job that a resend of its event brings back: once, and not where no retry can help or its body was erased. */
export const REVIVABLE = `
  j.state = 'dead' and j.death <> 'terminal' and j.revivals = 0
  and not exists (select from ukemi.erasures x where x.event = j.event)`;

// Locked first: it may wait for an erasure, which this statement would not see otherwise.
const REVIVE = `
with locked as materialized (
  select j.id, j.event
  from ukemi.jobs j
  where j.event = any($1::uuid[]) and ${REVIVABLE}
  order by j.id
  for update
),
revived as (
  update ukemi.jobs j
  set state = case when j.key is null then 'ready' else 'waiting' end,
    attempt = 0,
    -- what killed its workers may do so again: it is claimed alone from the start
    recoveries = case when j.death = 'crashed' then 1 else 0 end,
    revivals = j.revivals + 1, run_at = ukemi.now(),
    finished_at = null, death = null, not_yet_since = null
  from locked
  where j.id = locked.id and not ukemi.is_erased(locked.event)
  returning j.id, j.queue, j.key, j.event, j.tenant, j.subscription
),
outcomes as (
  update ukemi.event_outcomes o
  set status = 'pending', processed_at = null, error_message = null
  from revived
  where o.event = revived.event
    -- another job of the event that stays dead keeps it failed
    and not exists (
      select from ukemi.jobs d
      where d.event = o.event and d.state = 'dead' and d.id not in (select id from revived)
    )
),
audits as (
  insert into ukemi.audit_log (actor, role, action, target, tenant, details)
  select 'sender', 'system', 'job.revived', revived.id::text, revived.tenant,
    jsonb_build_object(
      'reason', 'the sender sent the event again', 'handler', subscription, 'event', e.id, 'event_id', e.event_id,
      'type', e.type, 'refs', ${REFS}
    )
  from revived
  join ukemi.events e on e.id = revived.event
)
select queue, key, count(*)::int as count
from revived
group by queue, key`;

/** Revives the dead jobs of these events. Returns the queues that have new work, the keys that it waits for, and how many. */
export async function reviveJobs(
  client: Queryable,
  events: readonly string[],
): Promise<readonly { readonly queue: string; readonly key: string | null; readonly count: number }[]> {
  const { rows } = await client.query<{ queue: string; key: string | null; count: number }>(REVIVE, [events]);
  return rows;
}
