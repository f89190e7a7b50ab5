// The limits that the processes on this store have: the longest counts, so that none removes what another keeps.
import type { Queryable } from "./postgres.ts";
import type { RetentionLimits } from "./retention.ts";

/** A limit, by the name of its option. */
export type LimitName = keyof RetentionLimits;

export const LIMIT_NAMES: readonly LimitName[] = ["bodyDays", "attemptDays", "jobDays", "effectDays"];

/** A process that is not heard of for so long has no say any more. */
const SEEN_DAYS = 2;
const FORGOTTEN = `ukemi.now() - ${SEEN_DAYS} * interval '1 day'`;

/** Says that a process runs with these limits. A commit each: in one, two processes could wait for each other. */
export async function noteLimits(client: Queryable, limits: RetentionLimits): Promise<void> {
  await client.query(
    `insert into ukemi.retention_limits (body_days, attempt_days, job_days, seen_at)
     values ($1, $2, $3, ukemi.now())
     on conflict (body_days, attempt_days, job_days) do update set seen_at = excluded.seen_at`,
    [limits.bodyDays, limits.attemptDays, limits.jobDays],
  );
  await client.query(`delete from ukemi.retention_limits where seen_at < ${FORGOTTEN}`);
  await client.query(
    `insert into ukemi.effect_limits (effect_days, seen_at)
     values ($1, ukemi.now())
     on conflict (effect_days) do update set seen_at = excluded.seen_at`,
    [limits.effectDays],
  );
  await client.query(`delete from ukemi.effect_limits where seen_at < ${FORGOTTEN}`);
}

/** What pruning goes by. */
export interface AgreedLimits {
  readonly limits: RetentionLimits;
  /** Those that another process has longer. */
  readonly longer: readonly LimitName[];
}

/** The longest of our limits and those of the processes that run; what is `named` by a person holds as it is. */
export async function agreeLimits(
  client: Queryable,
  own: RetentionLimits,
  named: readonly LimitName[] = [],
): Promise<AgreedLimits> {
  // two lists: a process of a version that knows nothing of effects has no say in theirs
  const { rows } = await client.query<Record<LimitName, number | null>>(
    `select body_days as "bodyDays", attempt_days as "attemptDays", job_days as "jobDays", null as "effectDays"
     from ukemi.retention_limits where seen_at >= ${FORGOTTEN}
     union all
     select null, null, null, effect_days
     from ukemi.effect_limits where seen_at >= ${FORGOTTEN}`,
  );
  const agreed = (name: LimitName) =>
    named.includes(name) ? own[name] : longest([own[name], ...rows.flatMap((row) => row[name] ?? [])]);
  const limits = {
    bodyDays: agreed("bodyDays"),
    attemptDays: agreed("attemptDays"),
    jobDays: agreed("jobDays"),
    effectDays: agreed("effectDays"),
  };
  return { limits, longer: LIMIT_NAMES.filter((name) => limits[name] !== own[name]) };
}

/** 0 is for ever. */
const longest = (days: readonly number[]) => (days.includes(0) ? 0 : Math.max(...days));
