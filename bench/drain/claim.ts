// The claim of the limits by hand: a plain lease on Ukemi's own table, with its indexes and checks, and the events that
// handlers need. No tenants, no priorities, no keys, no queues that are paused.
import { randomUUID } from "node:crypto";
import pg from "pg";
import { SUBSCRIPTION } from "./events.ts";
import type { DrainEvent } from "./job.ts";

/** A job that is held. */
export interface Claimed {
  readonly id: string;
  readonly token: string;
  readonly event: DrainEvent;
}

const CLAIM = `
with taken as materialized (
  select id from ukemi.jobs
  where queue = 'default' and subscription = '${SUBSCRIPTION}' and state = 'ready' and recoveries = 0
  order by priority desc, coalesce(tenant, ''), run_at, id
  limit $1
  for update skip locked
),
claimed as (
  update ukemi.jobs
  set state = 'running', lease_until = now() + interval '30 s', lease_token = $2, worker = $2, started_at = now()
  where id in (select id from taken)
  returning id, event
)
select c.id, b.body
from claimed c
join ukemi.events e on e.id = c.event
join ukemi.event_bodies b on b.event = e.id and b.received_at = e.received_at`;

export async function claimByHand(client: pg.Client, most: number): Promise<Claimed[]> {
  const token = randomUUID();
  const { rows } = await client.query<{ id: string; body: Buffer }>({
    name: "claim",
    text: CLAIM,
    values: [most, token],
  });
  return rows.map(({ id, body }) => ({ id, token, event: JSON.parse(body.toString()) as DrainEvent }));
}

/**
 * Completes jobs of one token or of several; raises where one of them is not ours any more. A job with a token is
 * running. Saying so again would make the planner walk an index of running jobs, which it believes to be empty.
 */
export const FENCE = `
with fenced as (
  update ukemi.jobs j
  set state = 'done', attempt = attempt + 1, finished_at = now(), lease_until = null, lease_token = null, worker = null
  from unnest($1::bigint[], $2::uuid[]) as d (id, token)
  where j.id = d.id and j.lease_token = d.token
  returning j.id
)
select 1 / (count(*) = cardinality($1::bigint[]))::int as settled from fenced`;

/** The same for one job. */
export const FENCE_ONE = `
with fenced as (
  update ukemi.jobs
  set state = 'done', attempt = attempt + 1, finished_at = now(), lease_until = null, lease_token = null, worker = null
  where id = $1 and lease_token = $2
  returning id
)
select 1 / count(*)::int as settled from fenced`;

/** A batch is found by its keys, however small the tables still are. */
const PLANS = "-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off";

/** Connections for lanes. */
export async function connectLanes(count: number, pipeline: boolean): Promise<pg.Client[]> {
  const connectionString = process.env.DATABASE_URL!;
  return Promise.all(
    Array.from({ length: count }, async () => {
      const client = new pg.Client({ connectionString, options: PLANS, pipeline });
      await client.connect();
      return client;
    }),
  );
}
