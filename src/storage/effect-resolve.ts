// Resolving an effect of which nobody knows whether it happened: a person has found out, and says so.
import { doubt } from "./effects-begin.ts";
import { giveUpFollowers } from "./effects-drop.ts";
import { launchAgain, launchFollowers } from "./effects-settle.ts";
import type { EffectState } from "./effects.ts";
import { cancelJob, isLive, lockEffect, type EffectChange, type Unchanged } from "./effect-lock.ts";
import type { Queryable } from "./postgres.ts";

export const RESOLUTIONS = ["done", "failed", "again"] as const;
/** What a person says: it happened, it did not and shall not, or it shall be tried again. */
export type Resolution = (typeof RESOLUTIONS)[number];

/** The effect as it is now. */
export type Resolved =
  | {
      readonly is: "resolved";
      readonly id: string;
      readonly state: EffectState;
      readonly job: number | null;
    }
  /** Nobody but the application can make such a call. */
  | { readonly is: "not_ours" }
  /** What it held was erased. */
  | { readonly is: "removed" }
  | Unchanged;

const RESOLVE = `
with changed as (
  update ukemi.effects e
  set state = $2::text, reason = $4::text, lease_until = null,
    ended_at = case when $2::text in ('done', 'failed') then ukemi.now() end,
    -- one that begins anew has all its time; that earlier calls may have been heard stays known
    spent_ms = case when $3::text = 'again' then 0 else e.spent_ms end,
    released = $3::text = 'again'
  where e.id = $1::uuid
  returning e.id, e.kind, e.tenant, e.dedupe_key, e.event, e.state, e.job
)
insert into ukemi.audit_log (actor, role, action, target, tenant, details)
select $5::text, 'operator', 'effect.resolved', c.id::text, c.tenant,
  jsonb_build_object(
    'reason', $4::text, 'as', $3::text, 'kind', c.kind, 'dedupe', c.dedupe_key, 'event', c.event,
    'before', $6::text, 'after', c.state, 'job', c.job
  )
from changed c`;

/** Settles it as the person says, or lets it begin again. Must run in a transaction. */
export async function resolveEffect(
  client: Queryable,
  id: string,
  as: Resolution,
  change: EffectChange,
): Promise<Resolved> {
  const locked = await lockEffect(client, id, change.tenants);
  if (!locked) return { is: "unknown" };
  const { state, job, kind } = locked;
  const isUncertain = state === "sending" || state === "uncertain";
  if (isUncertain && isLive(locked)) return { is: "busy", state, job };
  if (!isUncertain && state !== "held") return { is: "settled", state };
  if (kind === "call" && as === "again") return { is: "not_ours" };
  if (locked.removed && as === "again") return { is: "removed" };
  if (state === "sending") await doubt(client, id);
  const isDoubtful = locked.uncertainties > 0 || state === "sending";
  const next = as === "again" ? (isDoubtful ? "uncertain" : "planned") : as;
  await client.query(RESOLVE, [id, next, as, change.reason, change.actor, isUncertain ? "uncertain" : state]);
  await cancelJob(client, job);
  if (as === "again") await launchAgain(client, id);
  if (as === "done") await launchFollowers(client, id);
  if (as === "failed") await giveUpFollowers(client, [id], change);
  return { is: "resolved", id, state: next, job: await readJob(client, id) };
}

async function readJob(client: Queryable, id: string): Promise<number | null> {
  const { rows } = await client.query<{ job: string | null }>(
    "select job from ukemi.effects where id = $1::uuid",
    [id],
  );
  return rows[0]?.job == null ? null : Number(rows[0].job);
}
