// Addresses that mail must not go to any more, each for one tenant, or for mail of nobody in particular.
import { createConditions, pageOf, type Page } from "./conditions.ts";
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

/** Where a page ended: an address has no blanks. */
const cursorOf = ({ address, tenant }: Suppression) => `${address} ${tenant ?? ""}`;

/** Lists them by address. */
export async function listSuppressions(
  client: Queryable,
  filter: SuppressionFilter,
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
): Promise<Page<Suppression>> {
  const where = createConditions();
  where.add("address = ?", filter.address);
  where.add("tenant = ?", filter.tenant);
  where.add("tenant = any(?::text[])", filter.tenants);
  if (after !== undefined) {
    const blank = after.indexOf(" ");
    where.require(
      `(s.address, s.tenant) > (${where.value(after.slice(0, blank))}, ${where.value(after.slice(blank + 1))})`,
    );
  }
  const { rows } = await client.query<Omit<Suppression, "at"> & { readonly at: string }>(
    `select address, nullif(tenant, '') as tenant, reason, effect, to_json(at) as at
     from ukemi.mail_suppressions s
     ${where.where()}
     order by s.address, s.tenant
     limit ${where.value(limit + 1)}`,
    where.values,
  );
  const items = rows.map((row) => ({ ...row, at: new Date(row.at) }));
  return pageOf(items, limit, cursorOf);
}

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
  insert into ukemi.mail_suppressions (address, tenant, reason)
  values ($1, coalesce($2::text, ''), 'operator')
  on conflict do nothing
  returning tenant, reason
),
audits as (${audit("suppression.added")})
select from changed`;

const REMOVE = `
with changed as (
  delete from ukemi.mail_suppressions
  where address = $1 and tenant = coalesce($2::text, '')
  returning tenant, reason
),
audits as (${audit("suppression.removed")})
select from changed`;

/** Puts the address on the list. False where it was there. */
export const addSuppression = (client: Queryable, change: SuppressionChange) => run(client, ADD, change);
/** Takes it from the list. False where it was not there. */
export const removeSuppression = (client: Queryable, change: SuppressionChange) =>
  run(client, REMOVE, change);

async function run(client: Queryable, statement: string, change: SuppressionChange): Promise<boolean> {
  const { address, tenant, actor, masked, reason } = change;
  const { rowCount } = await client.query(statement, [address, tenant, actor, masked, reason]);
  return (rowCount ?? 0) > 0;
}
