// What is heard of a mail after it was taken, and whom not to write to any more.
import type { SqlClient } from "./enqueue.ts";

/** Why an address must not be written to. */
export type SuppressionReason = "bounce" | "complaint" | "refused" | "operator";

/** What was heard of a mail. */
export interface Feedback {
  readonly effect: string;
  readonly feedback: "delivered" | "bounced" | "complained" | "rejected" | "delayed";
  readonly at: Date | null;
  /** Where its address must not be written to any more: why. */
  readonly suppress: SuppressionReason | null;
}

/** Notices come in any order: a complaint outlives a delivery, and a delay says nothing once there is more. */
const WEIGHTS = "array['delayed', 'delivered', 'bounced', 'rejected', 'complained']";

const NOTE = `
update ukemi.effects e
set feedback = $2, feedback_at = coalesce($3::timestamptz, ukemi.now())
where e.id = $1::uuid and e.kind = 'email'
  and (e.feedback is null or array_position(${WEIGHTS}, $2) >= array_position(${WEIGHTS}, e.feedback))`;

const SUPPRESS = `
with mail as (
  select e.id, e.target, e.target_sealed, e.tenant
  from ukemi.effects e
  -- of one that was erased nobody knows to whom it went
  where e.id = $1::uuid and e.kind = 'email' and e.erased_at is null
),
listed as (
  insert into ukemi.mail_suppressions (tenant, address, reason, effect, address_sealed)
  select coalesce(tenant, ''), target, $2, id, target_sealed from mail
  on conflict do nothing
  returning effect
)
insert into ukemi.audit_log (actor, role, action, target, tenant, details)
select 'ukemi', 'system', 'address.suppressed', m.id::text, m.tenant, jsonb_build_object('reason', $2::text)
from listed l
join mail m on m.id = l.effect`;

/** Writes it down on the effect; where it says so, its address is suppressed for the tenant of the mail. */
export async function noteFeedback(
  client: SqlClient,
  { effect, feedback, at, suppress }: Feedback,
): Promise<void> {
  await client.query(NOTE, [effect, feedback, at?.toISOString() ?? null]);
  if (suppress !== null) await suppressAddress(client, effect, suppress);
}

/** The address of this mail must not be written to any more by its tenant. */
export async function suppressAddress(
  client: SqlClient,
  effect: string,
  reason: SuppressionReason,
): Promise<void> {
  await client.query(SUPPRESS, [effect, reason]);
}
