// Who calls the API, and what that caller may do.
import { UkemiError } from "../errors.ts";
import { SCOPES, type Scope } from "../storage/tokens.ts";

/** A caller whom we know. */
export interface Caller {
  /** For the audit, such as `token:nightly` or `cli:jane`. */
  readonly actor: string;
  /** Whose Idempotency-Keys are meant: two tokens may have the same name. */
  readonly identity: string;
  readonly scope: Scope;
  /** Only these tenants' things; undefined: everything. */
  readonly tenants?: readonly string[];
}

/** What a route demands of its caller. */
export interface Demand {
  readonly scope: Scope;
  /** `tenants`: a caller bound to tenants sees its part. `everything`: it belongs to no tenant, so such a caller may not. */
  readonly reach: "tenants" | "everything";
}

/** Throws unless the caller may. */
export function requireAllowed({ scope, tenants }: Caller, demand: Demand): void {
  if (SCOPES.indexOf(scope) < SCOPES.indexOf(demand.scope)) {
    throw new UkemiError(
      "forbidden",
      `This needs a token of scope ${demand.scope}; the token that was sent has the scope ${scope}.`,
    );
  }
  if (tenants !== undefined && demand.reach === "everything") {
    throw new UkemiError(
      "forbidden",
      "This concerns every tenant, and the token that was sent is bound to some.",
    );
  }
}

/** Throws where a bound caller names a tenant that is not its own: an empty list would look like an answer. */
export function requireTenant({ tenants }: Caller, wanted: string | undefined): void {
  if (wanted === undefined || tenants === undefined || tenants.includes(wanted)) return;
  throw new UkemiError("forbidden", "The token that was sent is not bound to this tenant.");
}
