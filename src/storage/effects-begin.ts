// Beginning a call: committed before its first byte, so that whoever comes later knows that it may have been made.
import type { Lease } from "./claim.ts";
import { admit, areLimits, keepGoing, type Admission, type DestinationLimits } from "./destinations.ts";
import { formsOf, intentName, openTarget } from "./effect-content.ts";
import type { Effect, EffectKind, EffectState, OnUncertain } from "./effects.ts";
import type { Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";
import { LeaseLost } from "./settle.ts";

export interface Beginning {
  readonly effect: string;
  readonly lease: Lease;
  readonly worker: string;
  /** What opens its intent. */
  readonly keyring: Keyring;
  /** Whether a call that was found under way, and that nobody makes any more, may be made again. */
  readonly mayRepeat: (effect: Effect) => boolean;
  /** Is told where such a call was found; nothing of it is committed yet. */
  readonly onDoubt: () => void;
  /** Whether it still may, now that its time has come. */
  readonly mayStill: (effect: Effect) => boolean;
  /** The limits of a destination. */
  readonly limitsFor: (destination: string) => DestinationLimits;
}

/** What is to be done with an effect now. */
export type Begun =
  /** Its call may be made, when its turn is by our steady clock. */
  | { readonly is: "go"; readonly effect: Effect; readonly turnAt: number }
  /** It must wait. */
  | ({ readonly is: "wait"; readonly destination: string } & Omit<
      Extract<Admission, { admitted: false }>,
      "admitted"
    >)
  /** There is nothing left to do. */
  | { readonly is: "over"; readonly state: EffectState }
  /** What it holds was erased: it can never be carried out. */
  | { readonly is: "erased" }
  /** A call may have been heard, and must not be made again: a person has to find out. */
  | { readonly is: "uncertain"; readonly effect: Effect; readonly why: string };

interface Row {
  readonly id: string;
  readonly kind: EffectKind;
  readonly tenant: string | null;
  readonly dedupe_key: string;
  readonly state: EffectState;
  readonly target: string;
  readonly target_sealed: string | null;
  readonly destination: string;
  readonly on_uncertain: OnUncertain;
  readonly intent: string;
  readonly attempt: number;
  readonly uncertainties: number;
  readonly spent_ms: number;
  readonly age_ms: number;
  readonly released: boolean;
  readonly removed: boolean;
}

const LOCK = `
select e.id::text, e.kind, e.tenant, e.dedupe_key, e.state, e.target, e.target_sealed, e.destination,
  e.on_uncertain, e.intent, e.attempt, e.uncertainties, e.spent_ms, e.released,
  coalesce(e.erased_at, e.pruned_at) is not null as removed,
  coalesce(extract(epoch from ukemi.now() - f.started_at) * 1000, 0)::float8 as age_ms
from ukemi.effects e
left join ukemi.effect_attempts f on f.effect = e.id and f.number = 1
where e.id = $1::uuid
for update of e`;

const GONE = "the process that made the call is gone: nobody knows whether it was heard";
const FORGOTTEN = "an earlier call may have been heard, and the peer does not know its key any more";
const listed = (reason: string) => `the address is on the list of those not to write to: ${reason}`;

const fence = (also: string) =>
  `select ${also} from ukemi.jobs where id = $1 and lease_token = $2 and state = 'running' for share`;
const FENCE = fence("");
/** With the lock of its destination: a statement of its own would be one more round trip for every call. */
const FENCE_UNLIMITED = fence(keepGoing("$3::text"));

const BEGIN = `
with begun as (
  update ukemi.effects
  set state = 'sending', attempt = attempt + 1, begun_at = ukemi.now(), reason = null, released = false
  where id = $1::uuid
  returning id, attempt, uncertainties
)
insert into ukemi.effect_attempts (effect, number, worker, started_at, repeats)
select id, attempt, $2::uuid, ukemi.now(), uncertainties > 0
from begun`;

/**
 * Decides what is to be done with the effect, and commits to it. Must run in a transaction. Throws LeaseLost, and
 * `body_sealed` or `body_altered` where its intent cannot be read: nothing was begun then.
 */
export async function beginEffect(client: Queryable, beginning: Beginning): Promise<Begun> {
  const { effect: id, lease, worker } = beginning;
  const { rows } = await client.query<Row>(LOCK, [id]);
  const row = rows[0];
  const limits = row && beginning.limitsFor(row.destination);
  const { rowCount } =
    limits === undefined || areLimits(limits)
      ? await client.query(FENCE, [lease.id, lease.token])
      : await client.query(FENCE_UNLIMITED, [lease.id, lease.token, row!.destination]);
  if (rowCount === 0) throw new LeaseLost();
  if (!row || !limits) return { is: "over", state: "cancelled" };
  if (OVER.includes(row.state)) return { is: "over", state: row.state };
  if (row.removed) return { is: "erased" };
  const found = await effectOf(client, row, beginning.keyring);
  const doubtful = await findDoubt(client, row, found, beginning);
  if (doubtful) return doubtful;
  const suppressed = row.kind === "email" ? await findListed(client, found, beginning.keyring) : undefined;
  if (suppressed !== undefined) {
    if (row.uncertainties > 0) return { is: "uncertain", effect: found, why: listed(suppressed) };
    await suppress(client, id, suppressed);
    return { is: "over", state: "suppressed" };
  }
  const admission = await admit(client, row.destination, limits);
  if (!admission.admitted) {
    const { waitMs, why, detail } = admission;
    return { is: "wait", destination: row.destination, waitMs, why, detail };
  }
  await client.query(BEGIN, [id, worker]);
  const uncertainties = row.uncertainties + (row.state === "sending" ? 1 : 0);
  const effect = { ...found, attempt: row.attempt + 1, uncertainties };
  return { is: "go", turnAt: admission.turnAt, effect };
}

/** Nothing is begun in these. */
const OVER: readonly EffectState[] = ["done", "failed", "cancelled", "suppressed", "held"];

/** An earlier call of which nobody knows how it ended, and that must not be made again; undefined where there is none. */
async function findDoubt(
  client: Queryable,
  { id, state, uncertainties, released }: Row,
  found: Effect,
  { mayRepeat, mayStill, onDoubt }: Beginning,
): Promise<Begun | undefined> {
  if (state === "sending") {
    await doubt(client, id);
    onDoubt();
    const effect = { ...found, uncertainties: found.uncertainties + 1 };
    // decided here, where it is found: from now on `uncertain` means that it may be made again
    return mayRepeat(effect) ? undefined : { is: "uncertain", effect, why: GONE };
  }
  const isDoubtful = state === "uncertain" || uncertainties > 0;
  if (!isDoubtful || released || mayStill(found)) return undefined;
  return { is: "uncertain", effect: found, why: FORGOTTEN };
}

/** Why its address must not be written to; undefined where it may. */
async function findListed(
  client: Queryable,
  { target, tenant }: Effect,
  keyring: Keyring,
): Promise<string | undefined> {
  // others may have listed it as a digest since this process began: whoever cannot compare must not write
  await keyring.know(client);
  const { rows } = await client.query<{ reason: string }>(
    "select reason from ukemi.mail_suppressions where address = any($1::text[]) and tenant = coalesce($2::text, '')",
    [formsOf(keyring, target), tenant],
  );
  return rows[0]?.reason;
}

async function effectOf(client: Queryable, row: Row, keyring: Keyring): Promise<Effect> {
  return {
    id: row.id,
    kind: row.kind,
    tenant: row.tenant,
    dedupeKey: row.dedupe_key,
    target: await openTarget(client, keyring, { target: row.target, sealed: row.target_sealed }),
    destination: row.destination,
    onUncertain: row.on_uncertain,
    intent: await keyring.openText(client, intentName(row.id), row.intent),
    attempt: row.attempt,
    uncertainties: row.uncertainties,
    spentMs: row.spent_ms,
    ageMs: row.age_ms,
  };
}

/** A call that is under way by nobody's account is one of which nobody knows how it ended. */
export async function doubt(client: Queryable, id: string): Promise<void> {
  await client.query(
    `with doubted as (
       update ukemi.effects
       set state = 'uncertain', uncertainties = uncertainties + 1, lease_until = null,
         reason = '${GONE}'
       where id = $1::uuid
       returning id, attempt, reason
     )
     update ukemi.effect_attempts a
     set result = 'uncertain', ended_at = ukemi.now(), error_class = 'CallerGone', error_message = d.reason
     from doubted d
     where a.effect = d.id and a.number = d.attempt and a.result is null`,
    [id],
  );
}

async function suppress(client: Queryable, id: string, reason: string): Promise<void> {
  await client.query(
    `with suppressed as (
       update ukemi.effects
       set state = 'suppressed', ended_at = ukemi.now(), reason = $2
       where id = $1::uuid
       returning id, tenant
     )
     insert into ukemi.audit_log (actor, role, action, target, tenant, details)
     select 'ukemi', 'system', 'email.suppressed', id::text, tenant, jsonb_build_object('reason', $3::text)
     from suppressed`,
    [id, listed(reason), reason],
  );
  await cancelFollowers(client, id, "suppressed");
}

/** What waits for one that never comes is cancelled with it. */
export async function cancelFollowers(
  client: Queryable,
  id: string,
  became: "suppressed" | "cancelled",
): Promise<void> {
  await client.query(
    `with recursive waiting as (
       select e.id from ukemi.effects e where e.after = $1::uuid and e.state = 'planned'
       union
       select e.id from ukemi.effects e join waiting w on e.after = w.id where e.state = 'planned'
     ),
     cancelled as (
       update ukemi.effects e
       set state = 'cancelled', ended_at = ukemi.now(), reason = 'what it waited for was ' || $2::text
       from waiting w
       where e.id = w.id and e.state = 'planned'
       returning e.id, e.kind, e.tenant
     )
     insert into ukemi.audit_log (actor, role, action, target, tenant, details)
     select 'ukemi', 'system', kind || '.cancelled', id::text, tenant, jsonb_build_object('with', $1::text)
     from cancelled`,
    [id, became],
  );
}
