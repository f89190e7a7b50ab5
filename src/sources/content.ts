// What is read from the body of a sender whose format we do not know: tenant and refs, by path.
import { invalidOption, readPath } from "./options.ts";
import { identifierAt, isIdentifier, valueAt } from "./payload.ts";
import type { JsonObject } from "./payload.ts";
import { createRefList } from "./refs.ts";
import { refuse } from "./signature.ts";
import type { Identity, Refusal } from "./source.ts";

/** What to read from a body beside its id and type. */
export interface ContentOptions {
  /** Whose event it is: a path into the signed body, or one tenant for all that arrives here. Unset: nobody's. */
  readonly tenant?: { readonly path: string } | { readonly fixed: string };
  /**
   * Business ids to find the event by: kind and path, such as `{ order: "data.order_id" }`.
   * @default {}
   */
  readonly refs?: Readonly<Record<string, string>>;
}

/** Checks the options at construction. */
export function readContentOptions(source: string, options: ContentOptions): void {
  const { tenant, refs = {} } = options;
  if (tenant && "path" in tenant) readPath(source, "tenant.path", tenant.path);
  if (tenant && "fixed" in tenant && !isIdentifier(tenant.fixed)) {
    throw invalidOption(source, "tenant.fixed is blank or too long");
  }
  for (const [kind, path] of Object.entries(refs)) readPath(source, `refs.${kind}`, path);
}

/** Reads tenant, account and refs. A tenant of the body is the account too: two tenants' ids must never collide. */
export function readContent(
  object: JsonObject,
  { tenant, refs = {} }: ContentOptions,
): Pick<Identity, "tenant" | "account" | "refs"> | Refusal {
  const found = createRefList();
  for (const [kind, path] of Object.entries(refs)) found.add(kind, identifierAt(object, path));
  if (!tenant || "fixed" in tenant) return { tenant: tenant?.fixed ?? null, account: "", refs: found.list };

  const owner = identifierAt(object, tenant.path);
  // Absent is nobody's; present but unfit must not become nobody's in silence.
  if (owner === undefined && (valueAt(object, tenant.path) ?? null) !== null) {
    return refuse("invalid_payload", `the tenant at ${tenant.path} is not a proper id`);
  }
  return { tenant: owner ?? null, account: owner ?? "", refs: found.list };
}
