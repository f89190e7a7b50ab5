// Cancelling an effect that has not begun, and those that wait for it.
import { cancelJob, isLive, lockEffect, type EffectChange, type Unchanged } from "./effect-lock.ts";
import type { Queryable } from "./postgres.ts";

/** What was cancelled. */
export type Cancelled =
  | { readonly is: "cancelled"; readonly id: string; readonly followers: readonly string[] }
  | Unchanged;

const FOLLOWERS = `
select e.id::text
from ukemi.effects e
where e.after = any($1::uuid[]) and e.state = 'planned'
order by e.id
for update`;

const CANCEL = `
with changed as (
  update ukemi.effects e
  set state = 'cancelled', ended_at = ukemi.now(), reason = 'cancelled by an operator: ' || $3::text
  where e.id = any($1::uuid[])
  returning e.id, e.kind, e.tenant, e.dedupe_key, e.event, e.job, e.after
)
insert into ukemi.audit_log (actor, role, action, target, tenant, details)
select $2::text, 'operator', 'effect.cancelled', c.id::text, c.tenant,
  jsonb_strip_nulls(jsonb_build_object(
    'reason', $3::text, 'kind', c.kind, 'dedupe', c.dedupe_key, 'event', c.event,
    'before', 'planned', 'after', 'cancelled', 'job', c.job,
    -- it waited for one that never comes
    'with', case when c.id <> $4::uuid then c.after end
  ))
from changed c
order by c.id`;

/** Cancels it with its job; what waits for it can never begin, and is cancelled too. Must run in a transaction. */
export async function cancelEffect(client: Queryable, id: string, change: EffectChange): Promise<Cancelled> {
  const locked = await lockEffect(client, id, change.tenants);
  if (!locked) return { is: "unknown" };
  const { state, job, jobState } = locked;
  if (jobState === "running" || (state === "sending" && isLive(locked))) return { is: "busy", state, job };
  if (state !== "planned") return { is: "settled", state };
  // an earlier call may have been heard: to say that it never went out would be a lie
  if (locked.uncertainties > 0) return { is: "settled", state: "uncertain" };
  const followers = await lockFollowers(client, [id]);
  await client.query(CANCEL, [[id, ...followers], change.actor, change.reason, id]);
  await cancelJob(client, job);
  return { is: "cancelled", id, followers };
}

/** Those that wait for these, and for each other. They have no jobs: these are made when what they wait for is done. */
export async function lockFollowers(client: Queryable, ids: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (let heads = ids; heads.length > 0;) {
    const { rows } = await client.query<{ id: string }>(FOLLOWERS, [heads]);
    heads = rows.map((row) => row.id);
    found.push(...heads);
  }
  return found;
}
