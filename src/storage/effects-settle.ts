// Settling a call: what is known of it now, in the ledger; those that waited for it may begin.
import { answerName, receiptName } from "./effect-content.ts";
import { cancelFollowers } from "./effects-begin.ts";
import type { EffectState } from "./effects.ts";
import type { Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";
import { CHANNEL } from "./presence.ts";

/** How a call ended, and what becomes of its effect. */
export interface Settlement {
  readonly effect: string;
  /** Which call: one that was begun since has the word. */
  readonly attempt: number;
  readonly state: Extract<EffectState, "planned" | "done" | "failed" | "uncertain" | "held">;
  /** Null where how the call ended was written down before. */
  readonly result: "done" | "again" | "failed" | "uncertain" | "blocked" | null;
  /** JSON text. */
  readonly receipt: string | null;
  readonly errorClass: string | null;
  readonly errorMessage: string | null;
  /** JSON text of what the peer said. */
  readonly answer: string | null;
  readonly tookMs: number;
  /** The wait before the next try. */
  readonly waitMs: number;
  /** JSON text of what the audit says; null where it need not know. */
  readonly audit: string | null;
}

const SETTLE = `
with doubt as (
  select exists (
    select from ukemi.effect_attempts a
    where a.effect = $1::uuid and a.number = $2::integer and a.error_class = 'CallerGone'
  ) as doubted
),
settled as (
  update ukemi.effects e
  -- its job has ended, and is no dead letter that could be replayed: it stays with the person who was called
  set state = case when e.state = 'held' and $3 = 'failed' then 'held' else $3 end,
    receipt = $5, reason = $7,
    ended_at = case when $3 = 'done' or $3 = 'failed' and e.state <> 'held' then ukemi.now() end,
    uncertainties = e.uncertainties + case
      when $4 = 'uncertain' and e.state = 'sending' then 1
      -- it was doubted while it was still under way, and how it ended is known after all
      when $4 <> 'uncertain' and d.doubted then -1
      else 0
    end,
    spent_ms = e.spent_ms + $9::float8 + $10::float8,
    lease_until = null
  from doubt d
  -- whoever found it under way meanwhile has only said that he does not know
  where e.id = $1::uuid and e.attempt = $2::integer
    and (
      e.state in ('sending', 'uncertain')
      or e.state = 'held' and d.doubted
      -- older versions planned it again though a call may have been heard
      or e.state = 'planned' and e.uncertainties > 0 and $3 = 'held'
    )
  returning e.id, e.kind, e.tenant, e.attempt, e.dedupe_key, e.event, e.state
),
attempts as (
  update ukemi.effect_attempts a
  set result = $4, ended_at = ukemi.now(), error_class = $6, error_message = $7, answer = $8, duration_ms = $9::float8
  from settled s
  where a.effect = s.id and a.number = s.attempt and $4::text is not null
),
audits as (
  insert into ukemi.audit_log (actor, role, action, target, tenant, details)
  select 'ukemi', 'system', s.kind || '.' || s.state, s.id::text, s.tenant,
    $11::jsonb || jsonb_strip_nulls(jsonb_build_object(
      'dedupe', s.dedupe_key, 'event', s.event, 'attempt', s.attempt, 'error_class', $6::text
    ))
  from settled s
  where $11::text is not null and s.state <> 'planned'
)
select id from settled`;

/** Writes down how the call ended. False where another call has been begun since, or somebody else has settled it. */
export async function settleEffect(
  client: Queryable,
  settlement: Settlement,
  keyring: Keyring,
): Promise<boolean> {
  const { effect, attempt, receipt, answer } = settlement;
  const { rows } = await client.query(SETTLE, [
    effect,
    attempt,
    settlement.state,
    settlement.result,
    receipt === null ? null : keyring.sealText(receiptName(effect), receipt),
    settlement.errorClass,
    settlement.errorMessage,
    answer === null ? null : keyring.sealText(answerName(effect, attempt), answer),
    settlement.tookMs,
    settlement.waitMs,
    settlement.audit,
  ]);
  if (rows.length === 0) return false;
  if (settlement.state === "done") await launchFollowers(client, effect);
  return true;
}

/** It waited for its destination for as long as it may: failed, or held where a call may have been heard. */
export async function expireEffect(client: Queryable, effect: string, reason: string): Promise<void> {
  await client.query(
    `update ukemi.effects
     set state = case when uncertainties > 0 then 'held' else 'failed' end,
       ended_at = case when uncertainties > 0 then null else ukemi.now() end, reason = $2
     where id = $1::uuid and state in ('planned', 'uncertain')`,
    [effect, reason],
  );
}

const launch = (condition: string) => `
with launched as (
  update ukemi.effects e
  set job = nextval('ukemi.jobs_id_seq')
  where ${condition}
  returning e.id, e.kind, e.tenant, e.job, e.max_attempts
),
jobs as (
  insert into ukemi.jobs (id, queue, kind, subscription, tenant, state, max_attempts, policy, run_at, created_at)
  overriding system value
  select job, 'effects.' || kind, 'effect', 'effect.' || kind, tenant, 'ready', max_attempts, 'effect', ukemi.now(), ukemi.now()
  from launched
  returning queue
),
payloads as (
  insert into ukemi.job_payloads (job, payload)
  select job, jsonb_build_object('effect', id)::text from launched
)
select pg_notify('${CHANNEL}', queue) from (select distinct queue from jobs) as news`;

/** Those that waited for this effect may begin. */
export async function launchFollowers(client: Queryable, effect: string): Promise<void> {
  await client.query(launch("e.after = $1::uuid and e.state = 'planned' and e.job is null"), [effect]);
}

/** An operator has given it up meanwhile: it is not begun again. What may have been heard stays with him. */
const GIVE_UP = `
with given_up as (
  update ukemi.effects e
  set state = case e.state when 'planned' then 'cancelled' else 'held' end,
    ended_at = case e.state when 'planned' then ukemi.now() end
  where e.id = $1::uuid and e.state in ('planned', 'uncertain')
    and exists (select from ukemi.jobs j where j.id = e.job and j.state = 'cancelled')
  returning e.id, e.kind, e.tenant, e.attempt, e.dedupe_key, e.event, e.job, e.state
),
audits as (
  insert into ukemi.audit_log (actor, role, action, target, tenant, details)
  select 'ukemi', 'system', kind || '.' || state, id::text, tenant,
    jsonb_strip_nulls(jsonb_build_object(
      'dedupe', dedupe_key, 'event', event, 'attempt', attempt, 'job', job, 'because', 'its job was given up'
    ))
  from given_up
)
select state from given_up`;

/**
 * The call did not happen after all, and the effect was held meanwhile: whoever held it has ended its job. One whose job is a
 * dead letter is left to an operator, who can replay it. Must follow settleEffect, in a statement of its own: that one may have
 * waited for the operator, and would still see the job as it was before.
 */
export async function launchReleased(client: Queryable, effect: string): Promise<void> {
  const { rows } = await client.query<{ state: EffectState }>(GIVE_UP, [effect]);
  if (rows[0]?.state === "cancelled") await cancelFollowers(client, effect, "cancelled");
  if (rows.length > 0) return;
  await client.query(
    launch(`e.id = $1::uuid and e.state in ('planned', 'uncertain') and not exists (
      select from ukemi.jobs j where j.id = e.job and j.state <> 'done'
    )`),
    [effect],
  );
}

/** A new job for an effect whose last one has ended. */
export async function launchAgain(client: Queryable, effect: string): Promise<void> {
  await client.query(launch("e.id = $1::uuid"), [effect]);
}
