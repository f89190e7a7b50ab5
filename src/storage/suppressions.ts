// Addresses that mail must not go to any more, each for one tenant, or for mail of nobody in particular.
import { formsOf, openTarget, sealTarget, showText, wordsOf } from "./effect-content.ts";
import { createConditions, pageOf, type Page } from "./conditions.ts";
import { NO_KEYS, type Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";

export const SUPPRESSION_REASONS = ["bounce", "complaint", "refused", "operator"] as const;

/** An address on the list. */
export interface Suppression {
  readonly address: string;
  /** Whose mail; null: mail of nobody in particular. */
  readonly tenant: string | null;
  readonly reason: (typeof SUPPRESSION_REASONS)[number];
  /** The mail after which it was put there. */
  readonly effect: string | null;
  readonly at: Date;
}

export interface SuppressionFilter {
  readonly address?: string;
  readonly tenant?: string;
  /** Only of these tenants. */
  readonly tenants?: readonly string[];
}

/** Where a page ended: neither an address nor a digest has blanks. */
const cursorOf = ({ address, tenant }: Suppression) => `${address} ${tenant ?? ""}`;

type Row = Omit<Suppression, "at"> & { readonly at: string; readonly address_sealed: string | null };

/** Lists them by address, those that are sealed by their digest. */
export async function listSuppressions(
  client: Queryable,
  filter: SuppressionFilter,
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
  keyring: Keyring = NO_KEYS,
): Promise<Page<Suppression>> {
  if (filter.address !== undefined) await keyring.know(client);
  const where = createConditions();
  where.add("address = any(?::text[])", filter.address && formsOf(keyring, filter.address));
  where.add("tenant = ?", filter.tenant);
  where.add("tenant = any(?::text[])", filter.tenants);
  if (after !== undefined) {
    const blank = after.indexOf(" ");
    where.require(
      `(s.address, s.tenant) > (${where.value(after.slice(0, blank))}, ${where.value(after.slice(blank + 1))})`,
    );
  }
  const { rows } = await client.query<Row>(
    `select address, address_sealed, nullif(tenant, '') as tenant, reason, effect, to_json(at) as at
     from ukemi.mail_suppressions s
     ${where.where()}
     order by s.address, s.tenant
     limit ${where.value(limit + 1)}`,
    where.values,
  );
  const { items, ...rest } = pageOf(rows.map(toStored), limit, cursorOf);
  const opened = items.map(async ({ address_sealed: sealed, ...item }) => {
    const address = await showText(openTarget(client, keyring, { target: item.address, sealed }));
    return { ...item, address: wordsOf(address) };
  });
  return { items: await Promise.all(opened), ...rest };
}

const toStored = (row: Row) => ({ ...row, at: new Date(row.at) });

/** Which address, who says so, and why. */
export interface SuppressionChange {
  readonly address: string;
  readonly tenant: string | null;
  /** The address as the audit may show it. */
  readonly masked: string;
  readonly actor: string;
  readonly reason: string;
}

const audit = (action: string) => `
  insert into ukemi.audit_log (actor, role, action, target, tenant, details)
  select $3::text, 'operator', '${action}', $4::text, nullif(c.tenant, ''),
    jsonb_build_object('reason', $5::text, 'because', c.reason)
  from changed c`;

const ADD = `
with changed as (
  insert into ukemi.mail_suppressions (address, tenant, reason, address_sealed)
  select $6::text, coalesce($2::text, ''), 'operator', $7::text
  -- from before there were keys it may lie there as it is
  where not exists (
    select from ukemi.mail_suppressions s where s.address = any($1::text[]) and s.tenant = coalesce($2::text, '')
  )
  on conflict do nothing
  returning tenant, reason
),
audits as (${audit("suppression.added")})
select from changed`;

const REMOVE = `
with changed as (
  delete from ukemi.mail_suppressions
  where address = any($1::text[]) and tenant = coalesce($2::text, '')
  returning tenant, reason
),
audits as (${audit("suppression.removed")})
select from changed`;

/** Puts the address on the list. False where it was there. */
export async function addSuppression(
  client: Queryable,
  change: SuppressionChange,
  keyring: Keyring = NO_KEYS,
): Promise<boolean> {
  await keyring.know(client);
  const { target, sealed } = sealTarget(keyring, "email", change.address);
  const { rowCount } = await client.query(ADD, [...valuesOf(change, keyring), target, sealed]);
  return (rowCount ?? 0) > 0;
}

/** Takes it from the list. False where it was not there. */
export async function removeSuppression(
  client: Queryable,
  change: SuppressionChange,
  keyring: Keyring = NO_KEYS,
): Promise<boolean> {
  await keyring.know(client);
  const { rowCount } = await client.query(REMOVE, valuesOf(change, keyring));
  return (rowCount ?? 0) > 0;
}

function valuesOf(
  { address, tenant, masked, actor, reason }: SuppressionChange,
  keyring: Keyring,
): unknown[] {
  return [formsOf(keyring, address), tenant, actor, masked, reason];
}
