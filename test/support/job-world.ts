// A database and a model of its jobs side by side: how both begin, and how they are compared after every act.
import { expect } from "vitest";
import type { Job } from "../../src/storage/claim.ts";
import { uuidv7 } from "../../src/storage/ids.ts";
import type { Connection, Pool } from "../../src/storage/postgres.ts";
import { registerSubscription } from "../../src/storage/subscriptions.ts";
import { registerWorker } from "../../src/storage/workers.ts";
import { WORKER_LOCKS } from "../../src/storage/live-workers.ts";
import * as model from "./job-model.ts";
import type { Model, ModelJob } from "./job-model.ts";

export const LEASE_MS = 600_000;
export const QUEUES = ["one", "two"] as const;
export const TASKS = ["task a", "task b"] as const;
/** Handlers of events by type: two for one event, one by key, one by key in order. */
export const HANDLERS = {
  plain: ["plain a", "plain b"],
  keyed: ["keyed"],
  ordered: ["ordered"],
} as const;
export const ALL_HANDLERS = [...TASKS, ...Object.values(HANDLERS).flat()];

export interface World {
  readonly pool: Pool;
  /** Holds the locks of the workers that live. */
  readonly session: Connection;
  readonly model: Model;
  /** The two that work now. */
  readonly workers: { id: string; number: number }[];
  /** Every lease that was ever had, the stale ones included. */
  readonly leases: { readonly job: Job; readonly worker: string }[];
  readonly events: string[];
  readonly auditsBefore: number;
}

/** What an act is expected to change in times: when a job runs next, and which leases are new. */
interface Times {
  readonly runAt?: ReadonlyMap<string, (now: number) => number>;
  readonly leased?: readonly string[];
}

interface Row {
  readonly id: string;
  readonly state: ModelJob["state"];
  readonly attempt: number;
  readonly recoveries: number;
  readonly revivals: number;
  readonly death: ModelJob["death"];
  readonly key_held: boolean;
  readonly started: boolean;
  readonly lease_token: string | null;
  readonly worker: string | null;
  readonly run_at: string;
  readonly lease_until: string | null;
  readonly not_yet_since: string | null;
}

const micros = (column: string) => `(extract(epoch from ${column}) * 1000000)::bigint`;

/** Reads every job, compares it with the model, and takes over the times that it was found to have. */
export async function compare(
  { pool, model: expected, auditsBefore }: World,
  times: Times = {},
): Promise<void> {
  const [jobs, rest] = await Promise.all([
    pool.query<Row>(`
      select id, state, attempt, recoveries, revivals, death, key_held, started_at is not null as started,
        lease_token, worker, ${micros("run_at")} as run_at, ${micros("lease_until")} as lease_until,
        ${micros("not_yet_since")} as not_yet_since
      from ukemi.jobs order by id`),
    pool.query<{ attempts: number; audits: number; now: string }>(`
      select (select count(*)::int from ukemi.attempts) as attempts,
        (select count(*)::int from ukemi.audit_log) as audits, ${micros("ukemi.now()")} as now`),
  ]);
  const { now, ...counts } = rest.rows[0]!;
  const before = expected.now;
  const after = Number(now);
  same(jobs.rows.map(facts), model.listJobs(expected).map(factsOf));
  expect(counts).toEqual({ attempts: expected.attempts, audits: expected.audits + auditsBefore });
  expect(holders(expected), "two hold one key").toEqual([...new Set(holders(expected))]);
  for (const row of jobs.rows) {
    const job = expected.jobs.get(row.id)!;
    const runAt = times.runAt?.get(row.id);
    within(Number(row.run_at), runAt ? [runAt(before), runAt(after)] : [job.runAt, job.runAt]);
    const leased = times.leased?.includes(row.id);
    const from = leased ? before + LEASE_MS * 1000 : job.leaseUntil;
    within(Number(row.lease_until), [from, leased ? after + LEASE_MS * 1000 : from]);
    job.runAt = Number(row.run_at);
    job.leaseUntil = Number(row.lease_until);
    job.notYetSince = row.not_yet_since === null ? null : Number(row.not_yet_since);
  }
  expected.now = after;
}

/** Asked thousands of times in a run: only what is wrong is put into an assertion. */
function within(time: number, [from, to]: readonly [number, number]): void {
  if (time >= from && time <= to) return;
  expect(time).toBeGreaterThanOrEqual(from);
  expect(time).toBeLessThanOrEqual(to);
}

function same(found: unknown, wanted: unknown): void {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) expect(found).toEqual(wanted);
}

export async function readNow(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ now: string }>(`select ${micros("ukemi.now()")} as now`);
  return Number(rows[0]!.now);
}

const holders = (expected: Model) =>
  model.listJobs(expected).flatMap(({ keyHeld, queue, key }) => (keyHeld ? `${queue}/${key}` : []));

const facts = (row: Row) => ({
  id: row.id,
  state: row.state,
  attempt: row.attempt,
  recoveries: row.recoveries,
  revivals: row.revivals,
  death: row.death,
  keyHeld: row.key_held,
  token: row.lease_token,
  worker: row.worker,
  started: row.state === "running" && row.started,
  notYet: row.not_yet_since !== null,
});

const factsOf = (job: ModelJob) => ({
  id: job.id,
  state: job.state,
  attempt: job.attempt,
  recoveries: job.recoveries,
  revivals: job.revivals,
  death: job.death,
  keyHeld: job.keyHeld,
  token: job.token,
  worker: job.worker,
  started: job.state === "running" && job.started,
  notYet: job.notYetSince !== null,
});

/** Empties what a run before left, and registers two workers. */
export async function startWorld(pool: Pool, session: Connection): Promise<World> {
  await pool.query(`
    delete from ukemi.jobs; delete from ukemi.job_payloads; delete from ukemi.attempts;
    delete from ukemi.queues; delete from ukemi.workers; delete from written;
    update ukemi.clock set shift = '0'`);
  await session.query("select pg_advisory_unlock_all()");
  const { rows } = await pool.query<{ count: number }>("select count(*)::int as count from ukemi.audit_log");
  const world: World = {
    pool,
    session,
    model: model.createModel(),
    workers: [],
    leases: [],
    events: [],
    auditsBefore: rows[0]!.count,
  };
  world.model.now = await readNow(pool);
  world.workers.push(await hire(world), await hire(world));
  return world;
}

export async function registerHandlers(pool: Pool): Promise<void> {
  for (const [type, names] of Object.entries(HANDLERS)) {
    const key = type === "plain" ? {} : { keyBy: "payment_intent", ordered: type === "ordered" };
    for (const name of names) {
      await registerSubscription(pool, {
        name,
        source: "stripe",
        pattern: type,
        queue: "one",
        maxAttempts: 2,
        ...key,
      });
    }
  }
}

/** Registers a worker that lives: its lock is held. */
export async function hire({ session }: World): Promise<{ id: string; number: number }> {
  const id = uuidv7(Date.now());
  const facts = {
    id,
    host: "test",
    pid: 1,
    version: "0",
    handlers: [],
    concurrency: new Map(),
    hasSession: true,
    leaseMs: LEASE_MS,
  };
  const number = await registerWorker(session, facts);
  await session.query("select pg_advisory_lock($1, $2)", [WORKER_LOCKS, number]);
  return { id, number };
}
