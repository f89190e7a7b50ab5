// Writing an intent into the ledger, in the transaction that decides it; the job that carries it out comes with it.
import { UkemiError } from "../errors.ts";
import { formsOf, intentName, sealTarget } from "./effect-content.ts";
import type { SqlClient } from "./enqueue.ts";
import { handlerOf, queueOf, type EffectKind, type OnUncertain } from "./effects.ts";
import { uuidv7 } from "./ids.ts";
import { NO_KEYS, type Keyring } from "./keyring.ts";
import { CHANNEL } from "./presence.ts";

/** An act that is intended. */
export interface Intent {
  readonly kind: EffectKind;
  readonly tenant: string | null;
  /** Unique for the tenant and kind, for ever. */
  readonly dedupeKey: string;
  readonly target: string;
  readonly amount: number | null;
  readonly currency: string | null;
  /** JSON text. */
  readonly intent: string;
  readonly destination: string;
  readonly onUncertain: OnUncertain;
  readonly maxAttempts: number;
  /** What decided it. */
  readonly event: string | null;
  readonly cause: string | null;
  readonly handler: string | null;
  /** The effect that must be done first. */
  readonly after: string | null;
  /** Where it is only to be recorded: why it is not to happen. */
  readonly cancelled: string | null;
}

/** What became of an intent. */
export interface Planned {
  /** The effect's id; of an intent that came again, that of the first one. */
  readonly id: string;
  /** True where the same was intended before: it does not happen a second time. */
  readonly suppressed: boolean;
}

/** What a job of an effect carries. */
export const payloadOf = (effect: string): string => JSON.stringify({ effect });

const PLAN = `
with moment as materialized (
  select ukemi.now() as at
),
first as (
  select e.id, e.state,
    -- a dead letter may be replayed
    e.state in ('cancelled', 'suppressed') or e.state = 'failed' and not exists (
      select from ukemi.jobs j where j.id = e.job and j.state not in ('done', 'cancelled')
    ) as never
  from ukemi.effects e
  where e.id = $16::uuid and coalesce(e.tenant, '') = coalesce($3::text, '')
  for share
),
-- one that waits for what will never come does not come either
verdict as (
  select coalesce(
    $17::text,
    (
      select 'what it should come after ' || case state when 'failed' then 'has failed for good' else 'was ' || state end
      from first
      where never
    )
  ) as cancelled
),
made as (
  insert into ukemi.effects (
    id, kind, tenant, dedupe_key, state, target, amount, currency, intent, destination, on_uncertain, max_attempts,
    event, cause, handler, after, job, planned_at, ended_at, reason, target_sealed
  )
  select
    $1::uuid, $2::text, $3::text, $4::text, case when v.cancelled is null then 'planned' else 'cancelled' end,
    $5::text, $6::bigint, $7::text, $8::text, $9::text, $10::text, $11::integer,
    $12::uuid, $13::bigint, $14::text, $16::uuid,
    case
      when v.cancelled is null and ($16::uuid is null or (select state from first) = 'done')
      then nextval('ukemi.jobs_id_seq')
    end,
    m.at, case when v.cancelled is not null then m.at end, v.cancelled, $20::text
  from moment m, verdict v
  where $16::uuid is null or exists (select from first)
  on conflict (coalesce(tenant, ''), kind, dedupe_key) where suppressed_by is null do nothing
  returning id, job
),
jobs as (
  insert into ukemi.jobs (id, queue, kind, subscription, tenant, state, max_attempts, policy, run_at, created_at)
  overriding system value
  select made.job, $15::text, 'effect', $18::text, $3::text, 'ready', $11::integer, 'effect', m.at, m.at
  from made, moment m
  where made.job is not null
  returning id, queue
),
payloads as (
  insert into ukemi.job_payloads (job, payload)
  select id, $19::text from jobs
),
-- reaches the workers when the transaction commits, and not before
news as materialized (
  select pg_notify('${CHANNEL}', queue) from jobs
),
there as (
  select e.id, e.target_sealed is not null as sealed,
    -- of one that was erased nobody knows any more to whom it went: the key alone must do
    (e.target = any($21::text[]) or e.erased_at is not null)
      and e.amount is not distinct from $6::bigint and e.currency is not distinct from $7::text as same
  from ukemi.effects e
  where coalesce(e.tenant, '') = coalesce($3::text, '') and e.kind = $2::text and e.dedupe_key = $4::text
    and e.suppressed_by is null and not exists (select from made)
),
repeated as (
  insert into ukemi.effects (
    id, kind, tenant, dedupe_key, state, target, amount, currency, intent, destination, on_uncertain, max_attempts,
    event, cause, handler, suppressed_by, planned_at, ended_at, reason, target_sealed
  )
  select
    $1::uuid, $2::text, $3::text, $4::text, 'suppressed', $5::text, $6::bigint, $7::text, $8::text, $9::text, $10::text,
    $11::integer, $12::uuid, $13::bigint, $14::text, there.id, m.at, m.at, 'the same was intended before', $20::text
  from there, moment m
  where there.same
  on conflict do nothing
)
select id::text, false as suppressed, true as same, false as sealed, (select count(*)::int from news) as told from made
union all
select id::text, true, same, sealed, 0 from there`;

/**
 * Waits for one who is settling it at this moment: either he sees this intent, or it sees what he did. In a statement before:
 * one that waited would still see the job as it was.
 */
const AWAIT_FIRST = `
select from ukemi.effects e
where e.id = $1::uuid and coalesce(e.tenant, '') = coalesce($2::text, '')
for share`;

interface Row {
  readonly id: string;
  readonly suppressed: boolean;
  readonly same: boolean;
  readonly sealed: boolean;
}

/** Records the intent. A second one with the same key is recorded as such, and does not happen. */
export async function planEffect(
  client: SqlClient,
  intent: Intent,
  keyring: Keyring = NO_KEYS,
): Promise<Planned> {
  const id = uuidv7(Date.now());
  const { target, sealed } = sealTarget(keyring, intent.kind, intent.target);
  const forms = formsOf(keyring, intent.target);
  const values = [
    id,
    intent.kind,
    intent.tenant,
    intent.dedupeKey,
    target,
    intent.amount,
    intent.currency,
    keyring.sealText(intentName(id), intent.intent),
    intent.destination,
    intent.onUncertain,
    intent.maxAttempts,
    intent.event,
    intent.cause,
    intent.handler,
    queueOf(intent.kind),
    intent.after,
    intent.cancelled,
    handlerOf(intent.kind),
    payloadOf(id),
    sealed,
    forms,
  ];
  if (intent.after !== null) await client.query(AWAIT_FIRST, [intent.after, intent.tenant]);
  let { rows } = await client.query(PLAN, values);
  // written by a transaction that committed after this statement's snapshot: the next one sees it
  if (rows.length === 0) ({ rows } = await client.query(PLAN, values));
  const row = rows[0] as Row | undefined;
  if (!row) throw new UkemiError("effect_conflict", `There is no effect ${intent.after} to come after.`);
  if (!row.same) {
    if (row.sealed && forms.length === 1) throw incomparable(intent.dedupeKey, row.id);
    const money = intent.amount === null ? "" : ", amount or currency";
    throw new UkemiError(
      "effect_conflict",
      `The dedupe key ${JSON.stringify(intent.dedupeKey)} of this ${intent.kind} stands for another target${money} already (effect ${row.id}).`,
    );
  }
  return { id: row.id, suppressed: row.suppressed };
}

/** Neither suppressed nor refused: whoever has the keys can tell which of both it is. */
function incomparable(dedupeKey: string, id: string): UkemiError {
  return new UkemiError(
    "body_sealed",
    `The dedupe key ${JSON.stringify(dedupeKey)} is that of the effect ${id}, and whether that has the same target cannot be told without bodyKeys.`,
  );
}
