// What pruning would remove: counted where that is cheap, else estimated by the planner, and said which.
import { hasFinished, KEPT_EVENTS, someKeptEvents } from "./kept.ts";
import { uuidv7Floor } from "./ids.ts";
import type { Queryable } from "./postgres.ts";
import { sqlState } from "./faults.ts";
import { oldOperations, WORKER_DAYS } from "./retention-batches.ts";
import { oldCalls, oldContents, OLD_HOURS } from "./retention-effects.ts";
import { listOldMonths, type BodyMonth } from "./retention-months.ts";
import { readPositions, type RetentionLimits } from "./retention.ts";

/** A number of rows. */
export interface Count {
  readonly count: number;
  /** False where it is an estimate. */
  readonly exact: boolean;
}

/** A month of bodies that is old enough to go. */
export interface MonthPreview {
  /** Such as `2025-01`. */
  readonly month: string;
  /** All bodies in it. */
  readonly bodies: Count;
  /** Those that stay, because a job of theirs is unfinished or dead. */
  readonly kept: Count;
  /** On disk. */
  readonly bytes: number;
}

/** What pruning would remove now. */
export interface RetentionPreview {
  readonly body_days: number;
  readonly attempt_days: number;
  readonly job_days: number;
  readonly effect_days: number;
  readonly months: readonly MonthPreview[];
  /** Old bodies whose month was not made in time: they lie apart, and go one by one. */
  readonly stray_bodies: Count;
  readonly jobs: Count;
  /** By their own age; others go together with their jobs. */
  readonly attempts: Count;
  readonly workers: Count;
  /** Ended as long ago as jobs are kept. */
  readonly operations: Count;
  /** Effects whose content would go; they stay themselves. */
  readonly effects: Count;
  /** Calls that were made for effects, by their own age; others go with what their effects held. */
  readonly effect_attempts: Count;
  /** Counts of calls by the hour that no limit needs any more. */
  readonly destination_hours: Count;
}

/** So many rows are looked at before an estimate must do. */
const LOOK_MAX = 1000;

const NOTHING: Count = { count: 0, exact: true };

/** Says what pruning would remove. Its cost does not grow with the tables. */
export async function previewRetention(
  client: Queryable,
  limits: RetentionLimits,
): Promise<RetentionPreview> {
  await client.query(
    "select set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)",
  );
  const { bodyDays, attemptDays, jobDays, effectDays } = limits;
  const after = await readPositions(client);
  const months: MonthPreview[] = [];
  for (const month of bodyDays === 0 ? [] : await listOldMonths(client, bodyDays)) {
    months.push(await previewMonth(client, month));
  }
  return {
    body_days: bodyDays,
    attempt_days: attemptDays,
    job_days: jobDays,
    effect_days: effectDays,
    months,
    stray_bodies: bodyDays === 0 ? NOTHING : await countStrays(client, bodyDays),
    jobs: jobDays === 0 ? NOTHING : await countOld(client, JOBS, { days: jobDays, after: after.jobs }),
    attempts:
      attemptDays === 0
        ? NOTHING
        : await countOld(client, ATTEMPTS, { days: attemptDays, after: after.attempts }),
    workers: await countUpTo(
      client,
      `select from ukemi.workers where ended_at < ukemi.now() - ${WORKER_DAYS} * interval '1 day'`,
    ),
    operations: jobDays === 0 ? NOTHING : await countUpTo(client, oldOperations(String(jobDays))),
    effects: effectDays === 0 ? NOTHING : await countUpTo(client, oldContents(effectDays)),
    effect_attempts: attemptDays === 0 ? NOTHING : await countUpTo(client, oldCalls(attemptDays)),
    destination_hours: await countUpTo(client, OLD_HOURS),
  };
}

async function previewMonth(client: Queryable, month: BodyMonth): Promise<MonthPreview> {
  const { rows } = await client.query<{ bytes: string }>(
    `select pg_total_relation_size('ukemi.${month.table}') as bytes`,
  );
  return {
    month: month.month,
    bodies: await countUpTo(client, `select from ukemi.${month.table}`),
    kept: await countKept(client, month),
    bytes: Number(rows[0]!.bytes),
  };
}

/** Where few bodies stay in all, each is looked for in the month; else those whose id says that it is of the month count. */
async function countKept(client: Queryable, { table, fromMs, untilMs }: BodyMonth): Promise<Count> {
  const { rows } = await client.query<{ events: number; kept: number }>(
    `with few as materialized (
       ${someKeptEvents(LOOK_MAX + 1)}
     )
     select count(*)::int as events,
       (count(*) filter (where exists (select from ukemi.${table} b where b.event = few.event)))::int as kept
     from few`,
  );
  const { events, kept } = rows[0]!;
  if (events <= LOOK_MAX) return { count: kept, exact: true };
  const within = await client.query<{ kept: string }>(
    `select count(*) as kept from (${KEPT_EVENTS}) as k where k.event >= $1::uuid and k.event < $2::uuid`,
    [uuidv7Floor(fromMs), uuidv7Floor(untilMs)],
  );
  return { count: Number(within.rows[0]!.kept), exact: false };
}

/** Counts up to the limit; beyond it the planner estimates. */
async function countUpTo(client: Queryable, query: string): Promise<Count> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int as count from (${query} limit ${LOOK_MAX + 1}) as few`,
  );
  const { count } = rows[0]!;
  return count <= LOOK_MAX ? { count, exact: true } : { count: await estimate(client, query), exact: false };
}

/** Old rows in the net below the months: it is small, or somebody may not make tables. */
async function countStrays(client: Queryable, days: number): Promise<Count> {
  const old = `received_at < ukemi.now() - ${days} * interval '1 day'`;
  const { rows } = await client.query<{ looked: number; count: number }>(
    `select count(*)::int as looked, (count(*) filter (where ${old} and not kept))::int as count
     from (
       select b.received_at, not (${hasFinished("b.event")}) as kept
       from ukemi.event_bodies_default b
       order by b.event
       limit ${LOOK_MAX + 1}
     ) as b`,
  );
  const { looked, count } = rows[0]!;
  if (looked <= LOOK_MAX) return { count, exact: true };
  return {
    count: await estimate(client, `select from ukemi.event_bodies_default where ${old}`),
    exact: false,
  };
}

/** A table that is walked by id, and which of its rows go once they are old. */
export interface Walked {
  readonly table: string;
  /** Grows with the id, nearly. */
  readonly madeAt: string;
  readonly goes: (days: number) => string;
}

const ago = (days: number) => `ukemi.now() - ${days} * interval '1 day'`;

/** Finished jobs. */
export const JOBS: Walked = {
  table: "jobs",
  madeAt: "created_at",
  goes: (days) => `
    t.state in ('done', 'cancelled') and t.finished_at < ${ago(days)}
    and ${hasFinished("t.event")}`,
};

/** Attempts of finished jobs. */
export const ATTEMPTS: Walked = {
  table: "attempts",
  madeAt: "ended_at",
  goes: (days) => `
    t.ended_at < ${ago(days)}
    and not exists (select from ukemi.jobs j where j.id = t.job and j.state not in ('done', 'cancelled'))`,
};

/** A part of the preview that takes longer than this is estimated. */
const COUNT_MS_MAX = 500;

async function countOld(
  client: Queryable,
  walked: Walked,
  { days, after }: { readonly days: number; readonly after: string },
): Promise<Count> {
  const { table, goes } = walked;
  // nothing behind it is old: what is left before it may still have become so
  const newest = (await newestOld(client, walked, { days, after })) ?? after;
  const counted = await countWithin(
    client,
    `select count(*)::int as looked, (count(*) filter (where goes))::int as count
     from (
       select ${goes(days)} as goes
       from ukemi.${table} t
       where t.id <= ${newest}
       order by t.id
       limit ${LOOK_MAX + 1}
     ) as t`,
  );
  if (counted && counted.looked <= LOOK_MAX) return { count: counted.count, exact: true };
  const finished = table === "jobs" ? " and state in ('done', 'cancelled')" : "";
  const query = `select from ukemi.${table} where id <= ${newest}${finished}`;
  return { count: await estimate(client, query), exact: false };
}

/** Counts, unless it takes too long: rows that went lately leave much behind to be stepped over. */
async function countWithin(
  client: Queryable,
  query: string,
): Promise<{ readonly looked: number; readonly count: number } | undefined> {
  await client.query(`savepoint counting; set local statement_timeout = ${COUNT_MS_MAX}`);
  try {
    const { rows } = await client.query<{ looked: number; count: number }>(query);
    return rows[0];
  } catch (error) {
    if (sqlState(error) !== "57014") throw error;
    return undefined;
  } finally {
    await client.query("rollback to savepoint counting");
  }
}

/**
 * The highest id behind `after` that was made before the time: found by halving, for no index knows the time.
 * Undefined where there is none.
 */
export async function newestOld(
  client: Queryable,
  { table, madeAt }: Walked,
  { days, after }: { readonly days: number; readonly after: string },
): Promise<string | undefined> {
  const { rows: last } = await client.query<{ id: string }>(
    `select id from ukemi.${table} order by id desc limit 1`,
  );
  let found: bigint | undefined;
  let low = BigInt(after) + 1n;
  let high = BigInt(last[0]?.id ?? 0);
  while (low <= high) {
    const middle = (low + high) / 2n;
    const { rows } = await client.query<{ id: string; old: boolean }>(
      `select id, ${madeAt} < ${ago(days)} as old from ukemi.${table} where id >= $1 order by id limit 1`,
      [middle.toString()],
    );
    if (rows[0]?.old) {
      found = BigInt(rows[0].id);
      low = found + 1n;
    } else {
      high = middle - 1n;
    }
  }
  return found?.toString();
}

/** What the planner expects. */
async function estimate(client: Queryable, query: string): Promise<number> {
  const { rows } = await client.query<{ "QUERY PLAN": [{ Plan: { "Plan Rows": number } }] }>(
    `explain (format json) ${query}`,
  );
  return rows[0]!["QUERY PLAN"][0].Plan["Plan Rows"];
}
