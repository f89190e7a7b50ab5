// How far a caller may reach: everything, or what belongs to some tenants.
import type { DeadFilter } from "../storage/dead-filter.ts";

/** Only what belongs to these tenants. @default everything */
export interface Reach {
  readonly tenants?: readonly string[] | undefined;
}

/** The filter within the caller's reach. */
export function within(filter: DeadFilter, { tenants }: Reach): DeadFilter {
  return tenants === undefined ? filter : { ...filter, tenants };
}
