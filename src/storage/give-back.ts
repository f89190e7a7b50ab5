// Giving a lease back before its job is settled: no attempt is burnt.
import type { Lease } from "./claim.ts";
import type { Queryable } from "./postgres.ts";

/** Why a lease is given back before its job was settled. It burns no attempt. */
export interface Return {
  readonly reason: string;
  /** How long the job waits before it is tried again. */
  readonly delayMs: number;
}

const GIVE_BACK = `
with given as (
  update ukemi.jobs j
  set state = case when $3 > 0 then 'scheduled' else 'ready' end,
    -- one that comes back a fifth time, and again and again, comes more and more slowly
    run_at = case
      when $3 > 0 then ukemi.now() + greatest($3, least($3 * power(2, least(greatest(j.returns - 4, 0), 10)), 60000)) * interval '1 ms'
      else j.run_at
    end,
    returns = j.returns + 1,
    key_held = j.key_held and ($3 = 0 or j.ordered),
    lease_until = null, lease_token = null, worker = null
  from unnest($1::bigint[], $2::uuid[]) as l (id, token)
  where j.id = l.id and j.lease_token = l.token and j.state = 'running'
  returning j.id, j.attempt, j.started_at, j.returns
),
tries as (
  insert into ukemi.attempts (job, number, outcome, error_class, error_message, started_at)
  select id, attempt + 1, 'returned', 'Returned', $4, started_at
  from given
  -- the eleventh in a row says nothing new, and it may go on for days
  where started_at is not null and returns <= 10
)
select id from given`;

/**
 * Gives leases back. Waits for a commit of the same job that is still under way, so that it also tells what became of
 * one whose answer was lost: a job that comes back was not committed, one that does not was.
 */
export async function giveBack(
  client: Queryable,
  leases: readonly Lease[],
  { reason, delayMs }: Return,
): Promise<Set<string>> {
  const { rows } = await client.query<{ id: string }>(GIVE_BACK, [
    leases.map((lease) => lease.id),
    leases.map((lease) => lease.token),
    Math.round(delayMs),
    reason,
  ]);
  return new Set(rows.map((row) => row.id));
}

/** Gives back whatever was claimed under the token: the answer to the claim was lost, so nobody runs it. */
export async function giveBackClaim(client: Queryable, worker: string, token: string): Promise<void> {
  await client.query(
    `update ukemi.jobs
     set state = 'ready', lease_until = null, lease_token = null, worker = null, started_at = null
     where worker = $1 and lease_token = $2 and state = 'running'`,
    [worker, token],
  );
}

/** Gives back jobs that were claimed and never started: as if nobody had claimed them. */
export async function giveBackUnstarted(client: Queryable, leases: readonly Lease[]): Promise<void> {
  await client.query(
    `update ukemi.jobs j
     set state = 'ready', lease_until = null, lease_token = null, worker = null, started_at = null
     from unnest($1::bigint[], $2::uuid[]) as l (id, token)
     where j.id = l.id and j.lease_token = l.token and j.state = 'running'`,
    [leases.map((lease) => lease.id), leases.map((lease) => lease.token)],
  );
}

/** True where the lease is still ours. */
export async function holdsLease(client: Queryable, { id, token }: Lease): Promise<boolean> {
  const { rowCount } = await client.query(
    "select from ukemi.jobs where id = $1 and lease_token = $2 and state = 'running'",
    [id, token],
  );
  return rowCount === 1;
}
