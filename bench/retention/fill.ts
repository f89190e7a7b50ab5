// Fills a store with a past: months of events with bodies, outcomes, finished jobs, attempts and a few dead letters.
import type { Pool } from "../../src/storage/postgres.ts";

export interface Past {
  readonly rows: number;
  readonly days: number;
  readonly bodyBytes: number;
}

const TABLES = ["events", "event_outcomes", "jobs", "attempts"];

/** Fills it by month, without indexes, which are made again afterwards; then vacuums, as the months would have. */
export async function fillPast(pool: Pool, past: Past, tell: (line: string) => void): Promise<void> {
  const client = await pool.connect();
  const run = async (what: string, sql: string) => {
    const startedAt = performance.now();
    await client.query(sql);
    tell(`${what}: ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  };
  await client.query(
    "set synchronous_commit = off; set maintenance_work_mem = '1GB'; set synchronize_seqscans = off; set max_parallel_workers_per_gather = 0",
  );
  await client.query(`update ukemi.clock set shift = - interval '${past.days} days'`);
  await client.query("select ukemi.make_body_months(9)");
  await client.query("update ukemi.clock set shift = '0'");
  await client.query(
    `insert into ukemi.subscriptions (name, source, pattern)
     values ('stripe/payment_intent.succeeded', 'stripe', 'payment_intent.succeeded') on conflict do nothing`,
  );
  const indexes = await dropIndexes(client);
  await run(
    "events",
    `insert into ukemi.events (id, source, event_id, type, tenant, received_at, body_sha256, body_bytes)
     select
       (lpad(to_hex((extract(epoch from t.at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
         || '8' || substr(md5(n::text), 4, 15))::uuid,
       'stripe', 'evt_past_' || n, 'payment_intent.succeeded', 'org_' || n % 50, t.at, '\\x00', ${past.bodyBytes}
     from generate_series(1, ${past.rows}) as n
     cross join (select ukemi.now() as now) as clock
     cross join lateral (
       select clock.now - interval '${past.days} days' * (1 - n / ${past.rows}.0) as at
     ) as t`,
  );
  const digits = Math.ceil(past.bodyBytes / 32);
  await run(
    "bodies",
    `insert into ukemi.event_bodies (event, received_at, body, headers)
     select id, received_at, repeat(md5(id::text), ${digits})::bytea, '{"content-type":"application/json"}'
     from ukemi.events`,
  );
  await run(
    "outcomes",
    `insert into ukemi.event_outcomes (event, status, processed_at)
     select id, 'success', received_at + interval '1 s' from ukemi.events`,
  );
  // one in a thousand is dead, one in ten thousand waits for next year
  await run(
    "jobs",
    `insert into ukemi.jobs (queue, kind, subscription, event, tenant, state, attempt, max_attempts, policy, run_at,
       created_at, started_at, finished_at, death)
     select 'default', 'handler', 'stripe/payment_intent.succeeded', id, tenant, s.state, 1, 4, 'quick',
       case when s.state = 'scheduled' then ukemi.now() + interval '1 year' else received_at end,
       received_at, received_at,
       case when s.state <> 'scheduled' then received_at + interval '1 s' end,
       case when s.state = 'dead' then 'exhausted' end
     from (select e.*, row_number() over () as place from ukemi.events e) as e
     cross join lateral (
       select case when place % 1000 = 0 then 'dead' when place % 10000 = 1 then 'scheduled' else 'done' end as state
     ) as s`,
  );
  await run(
    "attempts",
    `insert into ukemi.attempts (job, number, outcome, error_class, error_message, ended_at)
     select id, 1, 'retry', 'Error', 'the peer did not answer', created_at from ukemi.jobs where id % 10 = 0`,
  );
  for (const { name, sql } of indexes) await run(name, sql);
  client.release();
  for (const table of [...TABLES, "event_bodies"]) {
    const startedAt = performance.now();
    await pool.query(`vacuum (freeze, analyze) ukemi.${table}`);
    tell(`vacuum ${table}: ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  }
  await pool.query("checkpoint");
}

/** Drops the indexes and constraints that would be kept up row by row; returns how to make them again. */
async function dropIndexes(client: Pick<Pool, "query">): Promise<readonly { name: string; sql: string }[]> {
  const { rows } = await client.query<{ name: string; table: string; sql: string; constraint: boolean }>(
    `select c.relname as name, t.relname as table, k.oid is not null as constraint,
       case when k.oid is null then pg_get_indexdef(c.oid)
         else format('alter table ukemi.%I add constraint %I %s', t.relname, c.relname, pg_get_constraintdef(k.oid)) end as sql
     from pg_index i
     join pg_class c on c.oid = i.indexrelid
     join pg_class t on t.oid = i.indrelid
     join pg_namespace n on n.oid = t.relnamespace and n.nspname = 'ukemi'
     left join pg_constraint k on k.conindid = c.oid and k.contype in ('p', 'u')
     where t.relname = any($1)`,
    [TABLES],
  );
  for (const { name, table, constraint } of rows) {
    await client.query(
      constraint ? `alter table ukemi.${table} drop constraint ${name}` : `drop index ukemi.${name}`,
    );
  }
  return rows;
}
