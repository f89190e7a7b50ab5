// Rows by the million, made by SQL: events with a job each, as months of work would have left them behind.
import type pg from "pg";
import { dropIndexes } from "./indexes.ts";
import type { Progress } from "./progress.ts";

export interface Seed {
  readonly rows: number;
  /** Over how many days up to now they were received. */
  readonly days: number;
  /** Of each event; 0 where retention would have removed them all. */
  readonly bodyBytes: number;
  /** Finished (one in a thousand dead, one in ten thousand waits for another day), or all of them for another day. */
  readonly jobs: "finished" | "later";
}

const TABLES = ["events", "event_outcomes", "jobs", "attempts"];
const VACUUM = `vacuum ${TABLES.map((table) => `ukemi.${table}`).join(", ")}`;
/** Of one statement. */
const CHUNK_ROWS = 200_000;
/** An index, and a table to be vacuumed, takes about as long as so many chunks of ten million rows. */
const STEP_CHUNKS = 4;

/** A store that is filled has nothing else to do. */
const SERVER_SETTINGS = { autovacuum: "off", max_wal_size: "8GB", checkpoint_timeout: "30min" };
const SESSION_SETTINGS =
  "set synchronous_commit = off; set maintenance_work_mem = '1GB'; set max_parallel_workers_per_gather = 0";

/** Fills it without indexes, which are made again afterwards. Vacuums meanwhile, as the months would have. */
export async function seed(pool: pg.Pool, past: Seed, onProgress: Progress): Promise<void> {
  const client = await pool.connect();
  try {
    await setServer(client, SERVER_SETTINGS);
    await client.query(SESSION_SETTINGS);
    if (past.bodyBytes > 0) await makeMonths(client, past.days);
    await client.query(SUBSCRIBE);
    const indexes = await dropIndexes(client, TABLES);
    const chunks = Math.ceil(past.rows / CHUNK_ROWS);
    const vacuumed = [...TABLES, "event_bodies"];
    const total = chunks + (indexes.length + vacuumed.length) * STEP_CHUNKS;
    let done = 0;
    const step = async (what: string, weight: number, sql: string, values?: unknown[]) => {
      onProgress({ done, total, what });
      await client.query(sql, values);
      done += weight;
    };
    const now = new Date();
    for (let first = 1; first <= past.rows; first += CHUNK_ROWS) {
      const last = Math.min(past.rows, first + CHUNK_ROWS - 1);
      await step("rows", 1, FILL[past.jobs], [first, last, past.rows, past.days, now, past.bodyBytes]);
      // the room left in these pages is for the next rows, not for those of the contests
      await client.query(VACUUM);
    }
    for (const { name, sql } of indexes) await step(name, STEP_CHUNKS, sql);
    await client.query(CAUGHT_UP);
    for (const table of vacuumed) {
      await step(`vacuum ${table}`, STEP_CHUNKS, `vacuum (freeze, analyze) ukemi.${table}`);
    }
    onProgress({ done: total, total, what: "done" });
    await setServer(
      client,
      Object.fromEntries(Object.keys(SERVER_SETTINGS).map((name) => [name, "default"])),
    );
    await client.query("checkpoint");
  } finally {
    client.release();
  }
}

async function setServer(client: pg.ClientBase, settings: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, value] of Object.entries(settings)) {
    await client.query(`alter system set ${name} to ${value === "default" ? value : `'${value}'`}`);
  }
  await client.query("select pg_reload_conf()");
}

/** Bodies lie in months that were made ahead, so the clock goes back to make them. */
async function makeMonths(client: pg.ClientBase, days: number): Promise<void> {
  await client.query(`update ukemi.clock set shift = - interval '${days} days'`);
  await client.query("select ukemi.make_body_months($1)", [Math.ceil(days / 28) + 2]);
  await client.query("update ukemi.clock set shift = '0'");
}

const SUBSCRIPTION = "stripe/payment_intent.succeeded";
const SUBSCRIBE = `
insert into ukemi.subscriptions (name, source, pattern)
values ('${SUBSCRIPTION}', 'stripe', 'payment_intent.succeeded')
on conflict do nothing`;

const STATES = {
  finished: "case when n % 1000 = 0 then 'dead' when n % 10000 = 1 then 'scheduled' else 'done' end",
  later: "'scheduled'",
};

/** $1 and $2 are the first and the last number of $3 in all, over $4 days until $5, with bodies of $6 bytes. */
const FILL = { finished: fillSql(STATES.finished), later: fillSql(STATES.later) };

function fillSql(state: string): string {
  return `
with made as materialized (
  select
    n,
    t.at,
    -- an id of the seventh version, in the order of receipt
    (lpad(to_hex((extract(epoch from t.at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
      || '8' || substr(md5(n::text), 4, 15))::uuid as id,
    'org_' || n % 50 as tenant,
    ${state} as state
  from generate_series($1::integer, $2::integer) as n
  cross join lateral (
    select $5::timestamptz - interval '1 day' * $4::float8 * (1 - n / $3::float8) as at
  ) as t
),
events as (
  insert into ukemi.events (id, source, event_id, type, tenant, received_at, body_sha256, body_bytes, ref_kinds, ref_ids)
  select id, 'stripe', 'evt_past_' || n, 'payment_intent.succeeded', tenant, at, sha256(n::text::bytea), $6::integer,
    array['payment_intent', 'customer'], array['pi_past_' || n, 'cus_' || n % 100000]
  from made
),
bodies as (
  insert into ukemi.event_bodies (event, received_at, body, headers)
  select id, at, repeat(md5(n::text), ceil($6::integer / 32.0)::integer)::bytea, '{"content-type":"application/json"}'
  from made
  where $6::integer > 0
),
outcomes as (
  insert into ukemi.event_outcomes (event, status, processed_at)
  select id, 'failed', at + interval '1 s'
  from made
  where state = 'dead'
),
jobs as (
  insert into ukemi.jobs (queue, kind, subscription, event, tenant, state, attempt, max_attempts, policy, run_at,
    created_at, started_at, finished_at, death)
  select 'default', 'handler', '${SUBSCRIPTION}', id, tenant, state, 1, 4, 'quick',
    case when state = 'scheduled' then $5::timestamptz + interval '1 day' * (1 + n % 365) else at end,
    at, at,
    case when state <> 'scheduled' then at + interval '1 s' end,
    case when state = 'dead' then 'exhausted' end
  from made
  order by n
  returning id, created_at
)
insert into ukemi.attempts (job, number, outcome, error_class, error_message, ended_at)
select id, 1, 'retry', 'Error', 'the peer did not answer', created_at from jobs where id % 10 = 0`;
}

/** What goes on by itself has been done: the past is counted, and pruning was a moment ago. */
const CAUGHT_UP = `
with pruned as (
  update ukemi.retention set due_at = ukemi.now() + interval '1 day'
)
update ukemi.counting
set found_until = ukemi.now(), found_xmax = pg_current_xact_id(), sure_until = ukemi.now(), counted_until = ukemi.now(),
  running_since = ukemi.now(), judged_until = date_trunc('hour', ukemi.now(), 'UTC')`;
