// Effects whose job is gone while their call was under way: nobody will find out by himself how it ended.
import type { Queryable } from "./postgres.ts";

const GONE = `
  not exists (
    select from ukemi.jobs j
    where j.id = e.job and j.state in ('running', 'ready', 'scheduled', 'waiting')
  )`;

const FIND = `
select e.id::text
from ukemi.effects e
where e.state = 'sending' and e.kind <> 'call' and ${GONE}
for update skip locked`;

const HOLD = `
with stranded as (
  update ukemi.effects e
  set state = 'held', uncertainties = e.uncertainties + 1,
    reason = 'the process that made the call died, and its job with it: nobody knows whether it was heard'
  where e.id = any($1::uuid[]) and e.state = 'sending' and ${GONE}
  returning e.id, e.kind, e.tenant, e.attempt, e.dedupe_key, e.event, e.reason
),
attempts as (
  update ukemi.effect_attempts a
  set result = 'uncertain', ended_at = ukemi.now(), error_class = 'CallerGone', error_message = s.reason
  from stranded s
  where a.effect = s.id and a.number = s.attempt and a.result is null
)
insert into ukemi.audit_log (actor, role, action, target, tenant, details)
select 'ukemi', 'system', kind || '.held', id::text, tenant,
  jsonb_strip_nulls(jsonb_build_object('dedupe', dedupe_key, 'event', event, 'attempt', attempt))
from stranded`;

/** Leaves them to a person. The alert is that of the dead letter. */
export async function holdStranded(client: Queryable): Promise<void> {
  const { rows } = await client.query<{ id: string }>(FIND);
  if (rows.length === 0) return;
  // asked again when they are locked: meanwhile an operator may have put the job back to work
  await client.query(HOLD, [rows.map(({ id }) => id)]);
}
