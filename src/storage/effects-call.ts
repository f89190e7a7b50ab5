// Calls whose answer somebody waits for: intended, begun and settled in the ledger, without a job.
import { receiptName } from "./effect-content.ts";
import { doubt } from "./effects-begin.ts";
import type { Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";
import { uuidv7 } from "./ids.ts";

export interface CallIntent {
  readonly tenant: string | null;
  readonly key: string;
  /** How long a call may take before it counts as one of which nobody knows how it ended. */
  readonly leaseMs: number;
  /** For how long after the first call the peer knows the key again. */
  readonly keyValidMs: number;
}

/** What is to be done now. */
export type BegunCall =
  | { readonly is: "go"; readonly id: string; readonly attempt: number }
  | { readonly is: "done"; readonly receipt: string }
  /** It was done, and its result was removed since. */
  | { readonly is: "forgotten"; readonly id: string }
  | { readonly is: "failed"; readonly reason: string }
  /** Somebody else is making the call. */
  | { readonly is: "busy"; readonly id: string }
  /** It may have been heard, and the peer does not know the key any more. */
  | { readonly is: "uncertain"; readonly id: string };

/** The destination of all of them: whom they go to is known to the application only. */
export const CALLS = "call";

const INTEND = `
insert into ukemi.effects (
  id, kind, tenant, dedupe_key, state, target, intent, destination, on_uncertain, max_attempts, planned_at
)
values ($1::uuid, 'call', $2, $3, 'planned', $3, '{}', '${CALLS}', 'retry', 1, ukemi.now())
on conflict (coalesce(tenant, ''), kind, dedupe_key) where suppressed_by is null do nothing`;

interface Row {
  readonly id: string;
  readonly state: string;
  readonly attempt: number;
  readonly receipt: string | null;
  readonly reason: string | null;
  readonly removed: boolean;
  readonly leased: boolean;
  readonly expired: boolean;
}

const LOCK = `
select e.id::text, e.state, e.attempt, e.receipt, e.reason,
  coalesce(e.erased_at, e.pruned_at) is not null as removed,
  e.state = 'sending' and e.lease_until > m.at as leased,
  coalesce(m.at - f.started_at > $3::float8 * interval '1 ms', false) as expired
from (select ukemi.now() as at) as m, ukemi.effects e
left join ukemi.effect_attempts f on f.effect = e.id and f.number = 1
where coalesce(e.tenant, '') = coalesce($1::text, '') and e.kind = 'call' and e.dedupe_key = $2
  and e.suppressed_by is null
for update of e`;

const BEGIN = `
with lapsed as (
  update ukemi.effect_attempts
  set result = 'uncertain', ended_at = ukemi.now(), error_class = 'CallerGone'
  where effect = $1::uuid and result is null
  returning effect
),
begun as (
  update ukemi.effects
  set state = 'sending', attempt = attempt + 1, begun_at = ukemi.now(), reason = null,
    uncertainties = uncertainties + (select count(*)::int from lapsed),
    lease_until = ukemi.now() + $2::float8 * interval '1 ms'
  where id = $1::uuid
  returning id, attempt, uncertainties
)
insert into ukemi.effect_attempts (effect, number, started_at, repeats)
select id, attempt, ukemi.now(), uncertainties > 0 from begun
returning number`;

/** Intends the call if nobody has, and says what is to be done. Must run in a transaction. */
export async function beginCall(client: Queryable, intent: CallIntent, keyring: Keyring): Promise<BegunCall> {
  await client.query(INTEND, [uuidv7(Date.now()), intent.tenant, intent.key]);
  const { rows } = await client.query<Row>(LOCK, [intent.tenant, intent.key, intent.keyValidMs]);
  const row = rows[0]!;
  if (row.state === "done") {
    if (row.removed) return { is: "forgotten", id: row.id };
    return {
      is: "done",
      receipt: await keyring.openText(client, receiptName(row.id), row.receipt ?? "null"),
    };
  }
  if (row.state === "failed") return { is: "failed", reason: row.reason ?? "" };
  if (row.leased) return { is: "busy", id: row.id };
  if (row.expired || row.state === "held") {
    if (row.state === "sending") await doubt(client, row.id);
    if (row.state !== "held") await hold(client, row.id);
    return { is: "uncertain", id: row.id };
  }
  const begun = await client.query<{ number: number }>(BEGIN, [row.id, intent.leaseMs]);
  return { is: "go", id: row.id, attempt: begun.rows[0]!.number };
}

async function hold(client: Queryable, id: string): Promise<void> {
  await client.query(
    `with held as (
       update ukemi.effects
       set state = 'held', lease_until = null,
         reason = 'the call may have been heard, and the peer no longer knows its key'
       where id = $1::uuid
       returning id, tenant, dedupe_key
     )
     insert into ukemi.audit_log (actor, role, action, target, tenant, details)
     select 'ukemi', 'system', 'call.held', id::text, tenant, jsonb_build_object('dedupe', dedupe_key)
     from held`,
    [id],
  );
}

/** How a call ended. */
export interface CallEnd {
  readonly id: string;
  readonly attempt: number;
  readonly state: "done" | "failed" | "uncertain";
  readonly receipt: string | null;
  readonly errorClass: string | null;
  readonly errorMessage: string | null;
}

/** Writes down how it ended. False where another call has been begun since. */
export async function settleCall(client: Queryable, end: CallEnd, keyring: Keyring): Promise<boolean> {
  const receipt = end.receipt === null ? null : keyring.sealText(receiptName(end.id), end.receipt);
  const { rows } = await client.query(
    `with settled as (
       update ukemi.effects
       set state = $3, receipt = $4, reason = $6, lease_until = null,
         uncertainties = uncertainties + case when $3 = 'uncertain' then 1 else 0 end,
         ended_at = case when $3 <> 'uncertain' then ukemi.now() end
       -- one that was given up may still be heard of
       where id = $1::uuid and attempt = $2 and (state = 'sending' or state = 'uncertain' and $3 <> 'uncertain')
       returning id, attempt
     ),
     attempts as (
       update ukemi.effect_attempts a
       set result = $3, ended_at = ukemi.now(), error_class = $5, error_message = $6,
         duration_ms = extract(epoch from ukemi.now() - a.started_at) * 1000
       from settled s
       where a.effect = s.id and a.number = s.attempt
     )
     select id from settled`,
    [end.id, end.attempt, end.state, receipt, end.errorClass, end.errorMessage],
  );
  return rows.length === 1;
}
