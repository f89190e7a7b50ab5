// Reading the audit: who did what, when, to what, and why.
import type { Page } from "./conditions.ts";
import type { Queryable } from "./postgres.ts";
import { sift, type Sieve, type SiftOptions } from "./sift.ts";

/** Whose entries: `people` means everything that no handler wrote. */
export const AUDIT_ROLES = ["operator", "system", "handler", "people"] as const;

/** Which entries to list, newest first. */
export interface AuditFilter {
  /** Exactly, or by its beginning: `cli:*`. */
  readonly actor?: string;
  readonly role?: (typeof AUDIT_ROLES)[number];
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

type Row = Omit<AuditEntry, "id" | "at"> & { readonly id: string; readonly at: string };

const COLUMNS = {
  select: "t.id::text, to_json(t.at) as at, t.actor, t.role, t.action, t.target, t.tenant, t.details",
};

/** Lists entries, newest first. */
export async function listAudit(
  client: Queryable,
  filter: AuditFilter,
  options: SiftOptions,
): Promise<Page<AuditEntry>> {
  const sieve: Sieve = {
    table: "ukemi.audit_log",
    time: "at",
    found: [
      ["target = ?", filter.target],
      ["tenant = ?", filter.tenant],
      ["tenant = any(?::text[])", filter.tenants],
      // handlers write the most by far
      ["role <> ?", filter.role === "people" ? "handler" : undefined],
    ],
    told: [
      ["role = ?", filter.role === "people" ? undefined : filter.role],
      named("actor", filter.actor),
      named("action", filter.action),
    ],
    since: filter.since,
    until: filter.until,
  };
  const { items, ...rest } = await sift<Row>(client, sieve, COLUMNS, options);
  return { items: items.map((row) => ({ ...row, id: Number(row.id), at: new Date(row.at) })), ...rest };
}

/** Exactly, or by its beginning. */
function named(column: string, name: string | undefined): readonly [string, unknown] {
  return name?.endsWith("*") ? [`starts_with(${column}, ?)`, name.slice(0, -1)] : [`${column} = ?`, name];
}
