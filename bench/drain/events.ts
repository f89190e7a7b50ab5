// Stored events with a ready job each, as Ukemi's receipt leaves them behind: made by SQL, many in one statement.
import type pg from "pg";
import { eventSql, TEMPLATE } from "./job.ts";

/** The handler that all of them are for. */
export const SUBSCRIPTION = "stripe/payment_intent.succeeded";

const STORE = `
with made as materialized (
  select uuidv7() as id, 'evt_drain_' || n as event_id, ukemi.now() as at, ${eventSql("n")} as body
  from generate_series($2::integer, $2::integer + $3::integer - 1) as n
),
events as (
  insert into ukemi.events (id, source, event_id, type, received_at, body_sha256, body_bytes)
  select id, 'stripe', event_id, 'payment_intent.succeeded', at, sha256(body::bytea), length(body) from made
),
bodies as (
  insert into ukemi.event_bodies (event, received_at, body, headers)
  select id, at, body::bytea, '{}' from made
)
insert into ukemi.jobs (queue, kind, subscription, event, state, max_attempts, policy, run_at, created_at)
select 'default', 'handler', '${SUBSCRIPTION}', id, 'ready', 4, 'quick', at, at from made`;

export async function storeReadyEvents(pool: pg.Pool, first: number, count: number): Promise<void> {
  await pool.query(STORE, [TEMPLATE, first, count]);
}

/** Each state by its own index: a job that is meant for another day is no part of this, however many there are. */
const UNFINISHED = `
select (
  (select count(*) from ukemi.jobs where state = 'ready' and recoveries = 0)
  + (select count(*) from ukemi.jobs where state = 'ready' and recoveries > 0)
  + (select count(*) from ukemi.jobs where state = 'waiting')
  + (select count(*) from ukemi.jobs where state = 'running')
  + (select count(*) from ukemi.jobs where state = 'scheduled' and run_at < now() + interval '1 h')
)::integer as count`;

export async function countUnfinished(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(UNFINISHED);
  return rows[0]!.count;
}
