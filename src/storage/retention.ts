// Retention's own row: who prunes, how far it has come, and what has been removed and not yet audited.
import { UkemiError } from "../errors.ts";
import type { Queryable } from "./postgres.ts";

/** How long things are kept, in days; 0 keeps them for ever. */
export interface RetentionLimits {
  readonly bodyDays: number;
  readonly attemptDays: number;
  readonly jobDays: number;
  readonly effectDays: number;
}

/** A run of the pruner, and on whose behalf. */
export interface Run {
  readonly id: string;
  readonly actor: string;
  readonly role: "operator" | "system";
  readonly reason: string;
  /** What it goes by; the audit has them. */
  readonly limits: RetentionLimits;
}

/** Removed in many small commits, by what it was. */
export interface Removed {
  readonly jobs: number;
  readonly attempts: number;
  readonly bodies: number;
  readonly workers: number;
  readonly operations: number;
  /** Effects whose content was removed; they stay. */
  readonly effects: number;
  /** Calls that were made for effects. */
  readonly effect_attempts: number;
  /** Counts of calls by the hour. */
  readonly destination_hours: number;
}

const COUNTED = [
  "jobs",
  "attempts",
  "bodies",
  "workers",
  "operations",
  "effects",
  "effect_attempts",
  "destination_hours",
] as const satisfies readonly (keyof Removed)[];

const RESET = COUNTED.map((name) => `${name} = 0`).join(", ");

/** Where the walks begin. */
export interface Positions {
  readonly jobs: string;
  readonly attempts: string;
}

/** What came of asking to be the one that prunes. */
export type Taken =
  | { readonly taken: true; readonly positions: Positions }
  | { readonly taken: false; readonly busy: boolean; readonly actor: string; readonly againMs: number };

/** A run that is not heard of for so long may be replaced: its process has died. Nothing rests on it but peace. */
export const HELD_MS = 30_000;

/** What a run that died removed is audited in its name before the next begins. */
const AUDIT = (from: string) => `
  insert into ukemi.audit_log (actor, role, action, target, details)
  select r.actor, r.role, 'retention.pruned', 'rows',
    jsonb_build_object('reason', r.reason, ${COUNTED.map((name) => `'${name}', r.${name}`).join(", ")},
      'body_days', r.body_days, 'attempt_days', r.attempt_days, 'job_days', r.job_days, 'effect_days', r.effect_days)
  from ${from} r
  where ${COUNTED.map((name) => `r.${name}`).join(" + ")} > 0`;

const TAKE = `
with was as materialized (
  select * from ukemi.retention for update
),
taken as (
  update ukemi.retention r
  set holder = $1::uuid, held_until = ukemi.now() + ${HELD_MS} * interval '1 ms', started_at = ukemi.now(),
    actor = $2::text, role = $3::text, reason = $4::text,
    body_days = $6::int, attempt_days = $7::int, job_days = $8::int, effect_days = $9::int,
    ${RESET},
    -- from the first id at least once a day, and whenever a person asks
    jobs_after = case when again.all then 0 else r.jobs_after end,
    attempts_after = case when again.all then 0 else r.attempts_after end,
    walked_at = case when again.all then ukemi.now() else r.walked_at end
  from was
  cross join lateral (
    select not $5::boolean or was.walked_at is null or was.walked_at <= ukemi.now() - interval '1 day' as all
  ) as again
  where (was.holder is null or was.held_until <= ukemi.now())
    and (not $5::boolean or was.due_at is null or was.due_at <= ukemi.now())
  returning r.jobs_after, r.attempts_after
),
audits as (${AUDIT("(select was.* from was, taken)")})
select
  taken.jobs_after::text as jobs, taken.attempts_after::text as attempts,
  was.holder is not null and was.held_until > ukemi.now() as busy,
  coalesce(was.actor, '') as actor,
  extract(epoch from was.held_until - ukemi.now())::float8 * 1000 as held_ms,
  extract(epoch from was.due_at - ukemi.now())::float8 * 1000 as due_ms
from was
left join taken on true`;

/** Asks to be the one that prunes; with `onlyDue`, only where it is time. The commit decides among many that ask. */
export async function takeRetention(client: Queryable, run: Run, onlyDue: boolean): Promise<Taken> {
  const { bodyDays, attemptDays, jobDays, effectDays } = run.limits;
  const { rows } = await client.query<{
    jobs: string | null;
    attempts: string | null;
    busy: boolean;
    actor: string;
    held_ms: number | null;
    due_ms: number | null;
  }>(TAKE, [run.id, run.actor, run.role, run.reason, onlyDue, bodyDays, attemptDays, jobDays, effectDays]);
  const row = rows[0]!;
  if (row.jobs !== null && row.attempts !== null) {
    return { taken: true, positions: { jobs: row.jobs, attempts: row.attempts } };
  }
  const { busy, actor } = row;
  return { taken: false, busy, actor, againMs: Math.max(0, (busy ? row.held_ms : row.due_ms) ?? 0) };
}

/** How far the walks have come. */
export async function readPositions(client: Queryable): Promise<Positions> {
  const { rows } = await client.query<Positions>(
    "select jobs_after::text as jobs, attempts_after::text as attempts from ukemi.retention",
  );
  return rows[0]!;
}

/** Says that the run lives. False where another has taken over. */
export async function holdRetention(client: Queryable, run: Run): Promise<boolean> {
  const { rowCount } = await client.query(
    `update ukemi.retention set held_until = ukemi.now() + ${HELD_MS} * interval '1 ms' where holder = $1::uuid`,
    [run.id],
  );
  return rowCount === 1;
}

/** Notes, in the transaction that removed it, what goes into the audit, and how far the walks have come. */
export async function noteRemoved(
  client: Queryable,
  run: Run,
  removed: Partial<Removed>,
  positions: Partial<Positions> = {},
): Promise<void> {
  const sums = COUNTED.map((name, index) => `${name} = ${name} + $${index + 4}`).join(", ");
  const { rowCount } = await client.query(
    `update ukemi.retention
     set ${sums},
       jobs_after = coalesce($2::bigint, jobs_after), attempts_after = coalesce($3::bigint, attempts_after)
     where holder = $1::uuid`,
    [
      run.id,
      positions.jobs ?? null,
      positions.attempts ?? null,
      ...COUNTED.map((name) => removed[name] ?? 0),
    ],
  );
  if (rowCount !== 1) throw lost();
}

function lost(): UkemiError {
  return new UkemiError("contended", "Another process has taken over the pruning.", {
    remedy: "It goes on there; `ukemi audit` says what is removed.",
  });
}

/** Ends the run, with its audit in the same commit. It is due again after so many milliseconds. Returns what it removed. */
export async function endRetention(client: Queryable, run: Run, againMs: number): Promise<Removed> {
  const { rows } = await client.query<Record<keyof Removed, string>>(
    `with was as materialized (
       select * from ukemi.retention where holder = $1::uuid for update
     ),
     audits as (${AUDIT("was")})
     update ukemi.retention r
     set holder = null, held_until = null, due_at = ukemi.now() + $2 * interval '1 ms',
       ${RESET}
     from was
     returning ${COUNTED.map((name) => `was.${name}`).join(", ")}`,
    [run.id, againMs],
  );
  const row = rows[0];
  if (!row) throw lost();
  const counts = Object.fromEntries(COUNTED.map((name) => [name, Number(row[name])]));
  return counts as Record<keyof Removed, number>; // of every name there is one
}
