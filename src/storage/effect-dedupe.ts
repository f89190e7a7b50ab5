// Finding an effect by its dedupe key alone: the index begins with the tenant, so tenant after tenant is asked.
import { EFFECT_KINDS, type EffectKind } from "./effects.ts";
import type { Queryable } from "./postgres.ts";

/** Walks from tenant to tenant, however many effects each has. */
const TENANTS = `
with recursive tenants as (
  (select coalesce(e.tenant, '') as name from ukemi.effects e where e.suppressed_by is null order by 1 limit 1)
  union all
  select n.name
  from tenants t
  cross join lateral (
    select coalesce(e.tenant, '') as name
    from ukemi.effects e
    where e.suppressed_by is null and coalesce(e.tenant, '') > t.name
    order by 1
    limit 1
  ) as n
)`;

/** The ids of the effects that have this key; intents that came again point at them. */
export async function findByDedupe(
  client: Queryable,
  dedupe: string,
  within: { readonly kind?: EffectKind; readonly tenant?: string; readonly tenants?: readonly string[] },
): Promise<readonly string[]> {
  const tenants = within.tenant === undefined ? within.tenants : [within.tenant];
  const { rows } = await client.query<{ id: string }>(
    `${tenants === undefined ? TENANTS : "with tenants as (select unnest($3::text[]) as name)"}
     select e.id::text
     from tenants t
     cross join unnest($2::text[]) as k (kind)
     join ukemi.effects e on coalesce(e.tenant, '') = t.name and e.kind = k.kind and e.dedupe_key = $1
     where e.suppressed_by is null`,
    [dedupe, within.kind === undefined ? EFFECT_KINDS : [within.kind], ...(tenants ? [tenants] : [])],
  );
  return rows.map(({ id }) => id);
}
