// Settling a try that succeeded: outcome, links, audit and completion, under the fence of its lease.
import type { Job, Lease } from "./claim.ts";
import { sqlState } from "./faults.ts";
import type { Queryable } from "./postgres.ts";

/** One statement with rows: what an ORM's transaction can do too. */
export type RunSql = (text: string, values: unknown[]) => Promise<unknown>;

/** A line for the audit that a handler asked for. */
export interface AuditEntry {
  readonly action: string;
  readonly target: string | null;
  readonly details: Readonly<Record<string, unknown>>;
  /** The same key is written once. */
  readonly dedupeKey: string;
}

/** What a handler leaves behind beside its own writes. */
export interface Trail {
  readonly audits: readonly AuditEntry[];
  /** Our own ids of what the event is about, by kind: `billing`, `office`, `tenant`, `payment` … */
  readonly links: ReadonlyMap<string, string>;
}

/** How a try went, for the record. */
export interface Try {
  readonly durationMs: number;
  readonly worker: string;
  readonly traceId: string | null;
}

/** Thrown where the lease was lost: the transaction must be rolled back. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";
  constructor() {
    super("the lease was lost: another worker has the job, or an operator took it away");
  }
}

/** The mark of the transaction that belongs to a lease. */
export function markFor({ id, token }: Lease): string {
  return `${id}/${token}`;
}

const DONE = `
select ukemi.settle_done(
  $1::bigint, $2::uuid, $3::text, $4::integer, $5::text, $6::text, $7::jsonb, $8::jsonb, $9::float8, $10::uuid, $11::text
) as settled`;

/**
 * The same for most jobs, as one plain statement: the function is four, each made ready for one row. It calls no other unless
 * the fence fails, and writes no outcome: a job that is done says what its event comes to. The sum of two clocks is
 * `ukemi.now()`.
 */
const DONE_PLAINLY = `
with fenced as (
  update ukemi.jobs
  set state = 'done', attempt = attempt + 1, finished_at = clock_timestamp() + (select shift from ukemi.clock),
    lease_until = null, lease_token = null, worker = null, key_held = false,
    error_class = null, error_message = null, not_yet_since = null, returns = 0
  where id = $1::bigint and lease_token = $2::uuid
    and ($3::text is null or $3::text = coalesce(current_setting('ukemi.job', true), ''))
  returning id
)
select case when count(*) = 1 then true else ukemi.lease_lost() end as settled,
  case when current_setting('synchronous_commit') in ('off', 'local') then set_config('synchronous_commit', 'on', true) end
from fenced`;

/** What is raised where the fence failed. */
const LEASE_LOST = "UK001";

/** A statement whose values are ready to be sent. */
export interface Statement {
  /** By which a connection knows it once it has planned it. */
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

export interface Done {
  readonly trail: Trail;
  readonly attempt: Try;
  /** The transaction's own mark, null where no other statement ran before this one. */
  readonly within: string | null;
}

/** The statement that completes a job inside the handler's transaction: outcome, links, audit and completion. */
export function completionOf(job: Job, { trail, attempt, within }: Done): Statement {
  if (isPlain(job, trail)) {
    return { name: "ukemi settle plainly", text: DONE_PLAINLY, values: [job.id, job.token, within] };
  }
  return {
    name: "ukemi settle",
    text: DONE,
    values: [
      job.id,
      job.token,
      within,
      job.siblings,
      billingOf(trail),
      officeOf(trail),
      asJson(linksOf(trail)),
      asJson(auditsOf(trail)),
      attempt.durationMs,
      attempt.worker,
      attempt.traceId,
    ],
  };
}

/** True for a job that alone says what its event comes to, at its first try, of which there is nothing to say: under its lease nobody changes that. */
const isPlain = ({ event, siblings, attempt, recoveries }: Job, { audits, links }: Trail) =>
  event !== undefined && siblings <= 1 && attempt + recoveries + audits.length + links.size === 0;

const billingOf = ({ links }: Trail) => links.get("billing") ?? null;
const officeOf = ({ links }: Trail) => links.get("office") ?? links.get("tenant") ?? null;
const linksOf = ({ links }: Trail) => [...links].map(([kind, ref]) => ({ kind, ref }));
const auditsOf = ({ audits }: Trail) =>
  audits.map(({ dedupeKey, ...entry }) => ({ ...entry, dedupe_key: dedupeKey }));
/** An array of numbers, ids and hexadecimal digits as PostgreSQL reads it: `pg` would put each of them in quotes. */
const bareArray = <T>(list: readonly T[], valueOf: (one: T) => string | number | null): string =>
  `{${list.map((one) => valueOf(one) ?? "null").join(",")}}`;
const asJson = (list: readonly object[]) => (list.length > 0 ? JSON.stringify(list) : null);

/** What a failed completion means: LeaseLost where the fence failed. */
export function whyNotSettled(error: unknown): unknown {
  return sqlState(error) === LEASE_LOST ? new LeaseLost() : error;
}

/** Completes a job in a transaction that somebody else commits. */
export async function settleDone(run: RunSql, job: Job, done: Done): Promise<void> {
  const { text, values } = completionOf(job, done);
  await run(text, values).catch((error: unknown) => {
    throw whyNotSettled(error);
  });
}

const DONE_MANY = "select lost from ukemi.settle_plainly($1, $2, $3, $4, $5) as lost";

/** A job whose handler wrote nothing through its transaction. */
export interface Completion {
  readonly job: Job;
  readonly attempt: Try;
}

/** A job that shares its transaction with others; each alone says what its event comes to. */
export interface SharedCompletion extends Completion {
  readonly trail: Trail;
}

const TOGETHER = "select ukemi.settle_shared($1, $2, $3, $4, $5, $6, $7, $8, $9) as settled";

/** The statement that completes all of them inside their transaction. It fails where one has lost its lease. */
export function completionOfAll(done: readonly SharedCompletion[]): Statement {
  const linked = done.some(({ trail }) => trail.links.size > 0);
  const ofJob = <T extends object>({ job }: SharedCompletion, list: readonly T[]) =>
    list.map((entry) => ({ ...entry, job: job.id }));
  return {
    name: "ukemi settle together",
    text: TOGETHER,
    values: [
      bareArray(done, ({ job }) => job.id),
      bareArray(done, ({ job }) => job.token),
      linked ? done.map(({ trail }) => billingOf(trail)) : null,
      linked ? done.map(({ trail }) => officeOf(trail)) : null,
      asJson(done.flatMap((one) => ofJob(one, linksOf(one.trail)))),
      asJson(done.flatMap((one) => ofJob(one, auditsOf(one.trail)))),
      bareArray(done, ({ attempt }) => attempt.durationMs),
      bareArray(done, ({ attempt }) => attempt.traceId),
      done[0]!.attempt.worker,
    ],
  };
}

/** Completes many at once, each of which alone says what its event comes to. Returns the ids of those that had lost their lease. */
export async function settleManyDone(
  client: Queryable,
  worker: string,
  completions: readonly Completion[],
): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ lost: string }>(DONE_MANY, [
    bareArray(completions, ({ job }) => job.id),
    bareArray(completions, ({ job }) => job.token),
    bareArray(completions, ({ attempt }) => attempt.durationMs),
    bareArray(completions, ({ attempt }) => attempt.traceId),
    worker,
  ]);
  return new Set(rows.map((row) => row.lost));
}
