// Leases: kept alive while their worker lives.
import type { Lease } from "./claim.ts";
import type { Queryable } from "./postgres.ts";

export interface Extension {
  readonly leases: readonly Lease[];
  /** Every token under which the worker holds jobs, or may. */
  readonly tokens: readonly string[];
  /** A token newer than those: what is claimed meanwhile is none of this. */
  readonly before: string;
  readonly leaseMs: number;
}

const EXTEND = `
with seen as (
  update ukemi.workers set seen_at = ukemi.now(), missing_since = null where id = $1
),
held as materialized (
  select id, token from unnest($2::bigint[], $3::uuid[]) as l (id, token)
),
extended as (
  update ukemi.jobs
  set lease_until = ukemi.now() + $4 * interval '1 ms'
  where id in (
    -- a row that is locked is being settled at this moment
    select j.id
    from ukemi.jobs j
    join held on j.id = held.id and j.lease_token = held.token
    where j.state = 'running'
    for update of j skip locked
  )
),
strangers as (
  select j.id
  from ukemi.jobs j
  where j.worker = $1 and j.state = 'running' and j.lease_token <> all($5::uuid[])
    and j.lease_token < $6::uuid and j.lease_until < ukemi.now() + ($4 - 1000) * interval '1 ms'
  for update of j skip locked
),
given_back as (
  update ukemi.jobs j
  set state = 'ready', lease_until = null, lease_token = null, worker = null, started_at = null
  from strangers
  where j.id = strangers.id
)
select j.id
from ukemi.jobs j
join held on j.id = held.id and j.lease_token = held.token`;

/**
 * Extends the leases. Returns those that are still ours; the others were taken away. What is ours by the database and
 * unknown to us was claimed by a statement whose answer was lost, and is given back.
 */
export async function extendLeases(
  client: Queryable,
  worker: string,
  { leases, tokens, before, leaseMs }: Extension,
): Promise<Set<string>> {
  const { rows } = await client.query<{ id: string }>(EXTEND, [
    worker,
    leases.map((lease) => lease.id),
    leases.map((lease) => lease.token),
    leaseMs,
    tokens,
    before,
  ]);
  return new Set(rows.map((row) => row.id));
}
