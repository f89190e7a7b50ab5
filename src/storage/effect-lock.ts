// An effect in an operator's hands: locked as workers lock it, the effect before its job, so that one of both comes first.
import type { EffectKind, EffectState } from "./effects.ts";
import type { Queryable } from "./postgres.ts";
import type { JobState } from "./states.ts";

/** Who changes something, and why. */
export interface EffectChange {
  readonly actor: string;
  readonly reason: string;
  /** Only effects of these tenants: the others are not there. @default all */
  readonly tenants?: readonly string[] | undefined;
}

/** Why an effect was left as it is. */
export type Unchanged =
  | { readonly is: "unknown" }
  /** Somebody has it in his hands, or will have it in a moment. */
  | { readonly is: "busy"; readonly state: EffectState; readonly job: string | null }
  /** It is not in a state in which this can be done. */
  | { readonly is: "settled"; readonly state: EffectState };

/** An effect that nobody else changes until the transaction ends. */
export interface LockedEffect {
  readonly id: string;
  readonly kind: EffectKind;
  readonly state: EffectState;
  readonly job: string | null;
  readonly uncertainties: number;
  /** Whether what it held was erased: it can never be carried out again. */
  readonly removed: boolean;
  /** Whether somebody makes a call without a job at this moment. */
  readonly leased: boolean;
  /** Where its job is; null where it has none, or that was pruned. */
  readonly jobState: JobState | null;
}

// whoever waits longer for somebody else's transaction tries again
const SETTINGS = "select set_config('lock_timeout', '2s', true)";

const LOCK = `
select e.id::text, e.kind, e.state, e.job::text, e.uncertainties,
  coalesce(e.erased_at, e.pruned_at) is not null as removed,
  e.state = 'sending' and coalesce(e.lease_until > ukemi.now(), false) as leased
from ukemi.effects e
where e.id = $1::uuid and ($2::text[] is null or e.tenant = any($2::text[]))
for update`;

/** Locks the effect and its job. Must run in a transaction. */
export async function lockEffect(
  client: Queryable,
  id: string,
  tenants: readonly string[] | undefined,
): Promise<LockedEffect | undefined> {
  await client.query(SETTINGS);
  const { rows } = await client.query<Omit<LockedEffect, "jobState">>(LOCK, [id, tenants ?? null]);
  const effect = rows[0];
  if (!effect) return undefined;
  // in a statement after the lock: one that waited would still see the job as it was before
  const jobs = await client.query<{ state: JobState }>(
    "select state from ukemi.jobs where id = $1::bigint for update",
    [effect.job],
  );
  return { ...effect, jobState: jobs.rows[0]?.state ?? null };
}

/** Whether somebody has it in his hands, or will have it in a moment. */
export function isLive({ kind, leased, jobState }: LockedEffect): boolean {
  if (kind === "call") return leased;
  return jobState === "ready" || jobState === "scheduled" || jobState === "waiting" || jobState === "running";
}

/** Gives up the job that would have carried it out; one that has ended stays as it is. */
export async function cancelJob(client: Queryable, job: string | null): Promise<void> {
  await client.query(
    `update ukemi.jobs
     set state = 'cancelled', finished_at = ukemi.now(), death = null
     where id = $1::bigint and state in ('ready', 'scheduled', 'dead')`,
    [job],
  );
}
