// Sealing what effects held before there were keys: intents, receipts, answers, targets, and addresses on the list.
import { answerName, intentName, receiptName, sealTarget } from "./effect-content.ts";
import type { EffectKind } from "./effects.ts";
import type { Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";
import type { SealedBatch, Sealing } from "./seal-stored.ts";

const BATCH_EFFECTS = 200;
const BATCH_ADDRESSES = 500;

/** Of the effect `e` something lies as it was. `{}` holds nothing. */
const PLAIN = `(
  (e.intent <> '{}' and e.intent not like 'sealed:%')
  or (e.receipt <> '{}' and e.receipt not like 'sealed:%')
  or (e.kind in ('email', 'http') and e.target_sealed is null and e.erased_at is null)
  or exists (select from ukemi.effect_attempts a where a.effect = e.id and a.answer not like 'sealed:%')
)`;

/** How many effects, and how many addresses on the list, lie as they were. */
export async function countPlainEffects(
  client: Queryable,
): Promise<{ readonly effects: number; readonly addresses: number }> {
  const { rows } = await client.query<{ effects: string; addresses: string }>(
    `select (select count(*) from ukemi.effects e where ${PLAIN}) as effects,
       (select count(*) from ukemi.mail_suppressions where address_sealed is null) as addresses`,
  );
  return { effects: Number(rows[0]!.effects), addresses: Number(rows[0]!.addresses) };
}

interface Row {
  readonly id: string;
  readonly kind: EffectKind;
  readonly intent: string;
  readonly receipt: string | null;
  readonly target: string;
  readonly target_sealed: string | null;
  readonly erased: boolean;
}

/** Those in the hands of somebody are left: he would wait for us, and the next sealing finds them. */
const LOCK = `
select e.id::text, e.kind, e.intent, e.receipt, e.target, e.target_sealed, e.erased_at is not null as erased
from ukemi.effects e
where e.id = any($1::uuid[]) and ${PLAIN}
order by e.id
for update skip locked`;

const REPLACE = `
with changed as (
  update ukemi.effects e
  set intent = s.intent, receipt = s.receipt, target = s.target, target_sealed = s.target_sealed
  from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[]) as s (id, intent, receipt, target, target_sealed)
  where e.id = s.id
  returning e.id
)
insert into ukemi.audit_log (actor, role, action, details)
select $6::text, 'operator', 'effects.sealed', jsonb_build_object('reason', $7::text, 'effects', count(*))
from changed`;

/** Seals one batch of effects, with its audit. Must run in a transaction. */
export async function sealEffects(client: Queryable, sealing: Sealing): Promise<SealedBatch> {
  const { keyring, after, actor, reason } = sealing;
  await client.query("select set_config('lock_timeout', '2s', true)");
  const { rows: chosen } = await client.query<{ id: string }>(
    `select e.id::text from ukemi.effects e where e.id > $1::uuid and ${PLAIN} order by e.id limit ${BATCH_EFFECTS}`,
    [after],
  );
  if (chosen.length === 0) return { sealed: 0, next: undefined };
  const { rows } = await client.query<Row>(LOCK, [chosen.map(({ id }) => id)]);
  const sealed = rows.map((row) => sealedOf(keyring, row));
  if (sealed.length > 0) {
    await client.query(REPLACE, [
      sealed.map((row) => row.id),
      sealed.map((row) => row.intent),
      sealed.map((row) => row.receipt),
      sealed.map((row) => row.target),
      sealed.map((row) => row.target_sealed),
      actor,
      reason,
    ]);
    await sealAnswers(client, keyring, sealed);
  }
  return { sealed: sealed.length, next: chosen.at(-1)!.id };
}

const isPlain = (text: string) => text !== "{}" && !text.startsWith("sealed:");

function sealedOf(keyring: Keyring, row: Row): Row {
  const { id, kind, intent, receipt } = row;
  const { target, sealed } =
    row.target_sealed === null && !row.erased
      ? sealTarget(keyring, kind, row.target)
      : { target: row.target, sealed: row.target_sealed };
  return {
    ...row,
    intent: isPlain(intent) ? keyring.sealText(intentName(id), intent) : intent,
    receipt: receipt !== null && isPlain(receipt) ? keyring.sealText(receiptName(id), receipt) : receipt,
    target,
    target_sealed: sealed,
  };
}

async function sealAnswers(client: Queryable, keyring: Keyring, effects: readonly Row[]): Promise<void> {
  const { rows } = await client.query<{ effect: string; number: number; answer: string }>(
    `select a.effect::text, a.number, a.answer
     from ukemi.effect_attempts a
     where a.effect = any($1::uuid[]) and a.answer not like 'sealed:%'`,
    [effects.map(({ id }) => id)],
  );
  await client.query(
    `update ukemi.effect_attempts a
     set answer = s.answer
     from unnest($1::uuid[], $2::int[], $3::text[]) as s (effect, number, answer)
     where a.effect = s.effect and a.number = s.number`,
    [
      rows.map(({ effect }) => effect),
      rows.map(({ number }) => number),
      rows.map(({ effect, number, answer }) => keyring.sealText(answerName(effect, number), answer)),
    ],
  );
}

/** The address may be there as a digest already: put there after the keys were set. */
const REPLACE_ADDRESSES = `
with gone as (
  delete from ukemi.mail_suppressions s
  using unnest($1::text[], $2::text[], $3::text[], $4::text[]) as n (address, tenant, digest, sealed)
  where s.address = n.address and s.tenant = n.tenant and s.address_sealed is null
  returning n.digest, n.sealed, s.tenant, s.reason, s.effect, s.at
),
kept as (
  insert into ukemi.mail_suppressions (address, tenant, reason, effect, at, address_sealed)
  select digest, tenant, reason, effect, at, sealed from gone
  on conflict do nothing
)
insert into ukemi.audit_log (actor, role, action, details)
select $5::text, 'operator', 'suppressions.sealed', jsonb_build_object('reason', $6::text, 'addresses', count(*))
from gone`;

/** Seals one batch of addresses on the list, with its audit. Must run in a transaction. */
export async function sealAddresses(
  client: Queryable,
  { keyring, actor, reason }: Omit<Sealing, "after">,
): Promise<number> {
  const { rows } = await client.query<{ address: string; tenant: string }>(
    `select address, tenant from ukemi.mail_suppressions
     where address_sealed is null order by address, tenant limit ${BATCH_ADDRESSES} for update`,
  );
  if (rows.length === 0) return 0;
  const sealed = rows.map(({ address }) => sealTarget(keyring, "email", address));
  await client.query(REPLACE_ADDRESSES, [
    rows.map(({ address }) => address),
    rows.map(({ tenant }) => tenant),
    sealed.map(({ target }) => target),
    sealed.map((row) => row.sealed),
    actor,
    reason,
  ]);
  return rows.length;
}
