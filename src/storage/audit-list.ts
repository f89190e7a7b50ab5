// Reading the audit: who did what, when, to what, and why.
import { createConditions, pageOf, type Page } from "./conditions.ts";
import type { Queryable } from "./postgres.ts";

/** Which entries to list, newest first. */
export interface AuditFilter {
  /** Exactly, or by its beginning: `cli:*`. */
  readonly actor?: string;
  /** `operator`, `system` or `handler`; `people` for everything that no handler wrote. */
  readonly role?: string;
  /** Exactly, or by its beginning: `job.*`. */
  readonly action?: string;
  readonly target?: string;
  readonly tenant?: string;
  /** Only of these tenants. */
  readonly tenants?: readonly string[];
  readonly since?: Date;
  readonly until?: Date;
}

/** An entry of the audit as the API and the command line show it. */
export interface AuditEntry {
  readonly id: number;
  readonly at: Date;
  readonly actor: string;
  readonly role: "operator" | "system" | "handler";
  readonly action: string;
  readonly target: string | null;
  readonly tenant: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Lists entries, newest first. */
export async function listAudit(
  client: Queryable,
  filter: AuditFilter,
  page: { readonly limit: number; readonly before?: string },
): Promise<Page<AuditEntry>> {
  const conditions = createConditions();
  const addName = (column: string, name: string | undefined) =>
    name?.endsWith("*")
      ? conditions.add(`starts_with(${column}, ?)`, name.slice(0, -1))
      : conditions.add(`${column} = ?`, name);
  addName("actor", filter.actor);
  addName("action", filter.action);
  if (filter.role === "people") conditions.require("role <> 'handler'");
  else conditions.add("role = ?", filter.role);
  conditions.add("target = ?", filter.target);
  conditions.add("tenant = ?", filter.tenant);
  conditions.add("tenant = any(?::text[])", filter.tenants);
  conditions.add("at >= ?", filter.since);
  conditions.add("at < ?", filter.until);
  conditions.add("id < ?::bigint", page.before);
  const { rows } = await client.query<Omit<AuditEntry, "id" | "at"> & { id: string; at: string }>(
    `select id, to_json(at) as at, actor, role, action, target, tenant, details
     from ukemi.audit_log
     ${conditions.where()}
     order by id desc
     limit ${conditions.value(page.limit + 1)}`,
    conditions.values,
  );
  const entries = rows.map((row) => ({ ...row, id: Number(row.id), at: new Date(row.at) }));
  return pageOf(entries, page.limit, (entry) => String(entry.id));
}
