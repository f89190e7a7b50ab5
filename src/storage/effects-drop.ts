// Effects whose jobs are dropped: given up with them, unless nobody knows whether they happened.
import { lockFollowers } from "./effect-cancel.ts";
import type { Queryable } from "./postgres.ts";

/** Jobs that are dropped, by whom, and why. */
export interface EffectDrop {
  readonly jobs: readonly string[];
  /** Those of them that died because every try failed: no answer of the peer was its last word. */
  readonly exhausted: readonly string[];
  readonly actor: string;
  readonly reason: string;
}

/** Locks the effects of these jobs: before the jobs, as workers and operators do. */
export async function lockEffectsOf(
  client: Queryable,
  jobs: readonly string[],
  tenants: readonly string[] | undefined,
): Promise<void> {
  await client.query(
    `select from ukemi.effects e
     where e.job = any($1::bigint[]) and ($2::text[] is null or e.tenant = any($2::text[]))
     order by e.id
     for update`,
    [jobs, tenants ?? null],
  );
}

const DROP = `
with was as materialized (
  select e.id, e.state,
    case
      -- nobody will try it again, and nobody knows whether it happened: a person must find out
      when e.state in ('sending', 'uncertain') or e.state = 'planned' and e.uncertainties > 0 then 'held'
      when e.state = 'failed' and e.uncertainties > 0 and e.job = any($4::bigint[]) then 'held'
      when e.state = 'planned' or e.state = 'failed' and e.attempt = 0 then 'cancelled'
      -- the peer has refused it, or waits for a person's word: that stays true
      else e.state
    end as next
  from ukemi.effects e
  where e.job = any($1::bigint[]) and e.state in ('planned', 'sending', 'uncertain', 'held', 'failed')
),
changed as (
  update ukemi.effects e
  set state = w.next,
    ended_at = case w.next when 'cancelled' then ukemi.now() when 'held' then null else e.ended_at end,
    uncertainties = e.uncertainties + case when w.state = 'sending' then 1 else 0 end,
    reason = case when w.next = w.state then e.reason else 'its job was dropped by an operator: ' || $3::text end
  from was w
  where e.id = w.id
  returning e.id, e.kind, e.tenant, e.dedupe_key, e.event, e.job, e.attempt, e.reason, w.state as before, w.next
),
attempts as (
  update ukemi.effect_attempts a
  set result = 'uncertain', ended_at = ukemi.now(), error_class = 'CallerGone', error_message = c.reason
  from changed c
  where c.before = 'sending' and a.effect = c.id and a.number = c.attempt and a.result is null
),
audits as (
  insert into ukemi.audit_log (actor, role, action, target, tenant, details)
  select $2::text, 'operator', 'effect.' || case when c.next = c.before then 'dropped' else c.next end, c.id::text, c.tenant,
    jsonb_strip_nulls(jsonb_build_object(
      'reason', $3::text, 'kind', c.kind, 'dedupe', c.dedupe_key, 'event', c.event,
      'before', c.before, 'after', c.next, 'job', c.job
    ))
  from changed c
  order by c.id
)
select id::text from changed where next in ('cancelled', 'failed')`;

const CANCEL = `
with cancelled as (
  update ukemi.effects e
  set state = 'cancelled', ended_at = ukemi.now(), reason = 'what it waited for was given up: ' || $3::text
  where e.id = any($1::uuid[])
  returning e.id, e.kind, e.tenant, e.dedupe_key, e.event, e.after
)
insert into ukemi.audit_log (actor, role, action, target, tenant, details)
select $2::text, 'operator', 'effect.cancelled', c.id::text, c.tenant,
  jsonb_strip_nulls(jsonb_build_object(
    'reason', $3::text, 'kind', c.kind, 'dedupe', c.dedupe_key, 'event', c.event,
    'before', 'planned', 'after', 'cancelled', 'with', c.after
  ))
from cancelled c
order by c.id`;

/** Gives up the effects of dropped jobs, and what waits for them. They must be locked. Must run in a transaction. */
export async function dropEffects(client: Queryable, drop: EffectDrop): Promise<void> {
  const { rows } = await client.query<{ id: string }>(DROP, [
    drop.jobs,
    drop.actor,
    drop.reason,
    drop.exhausted,
  ]);
  await giveUpFollowers(
    client,
    rows.map(({ id }) => id),
    drop,
  );
}

/** What waits for effects that never come is cancelled. */
export async function giveUpFollowers(
  client: Queryable,
  ids: readonly string[],
  { actor, reason }: { readonly actor: string; readonly reason: string },
): Promise<void> {
  const followers = await lockFollowers(client, ids);
  if (followers.length > 0) await client.query(CANCEL, [followers, actor, reason]);
}
