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

/** What the function raises where the fence failed. */
const LEASE_LOST = "UK001";

/** A statement whose values are ready to be sent. */
export interface Statement {
  /** By which a connection knows it once it has planned it. */
  readonly name: string;
  readonly text: string;
  readonly values: (string | number | null)[];
}

export interface Done {
  readonly trail: Trail;
  readonly attempt: Try;
  /** The transaction's own mark, null where no other statement ran before this one. */
  readonly within: string | null;
}

/** The statement that completes a job inside the handler's transaction: outcome, links, audit and completion. */
export function completionOf(job: Job, { trail, attempt, within }: Done): Statement {
  const links = [...trail.links].map(([kind, ref]) => ({ kind, ref }));
  const audits = trail.audits.map(({ dedupeKey, ...entry }) => ({ ...entry, dedupe_key: dedupeKey }));
  return {
    name: "ukemi settle",
    text: DONE,
    values: [
      job.id,
      job.token,
      within,
      job.siblings,
      trail.links.get("billing") ?? null,
      trail.links.get("office") ?? trail.links.get("tenant") ?? null,
      links.length > 0 ? JSON.stringify(links) : null,
      audits.length > 0 ? JSON.stringify(audits) : null,
      attempt.durationMs,
      attempt.worker,
      attempt.traceId,
    ],
  };
}

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

const DONE_MANY = "select lost from ukemi.settle_many($1, $2, $3, $4, $5) as lost";

/** A job whose handler wrote nothing through its transaction. */
export interface Completion {
  readonly job: Job;
  readonly attempt: Try;
}

/** Completes many at once, each the only job of its event. Returns the ids of those that had lost their lease. */
export async function settleManyDone(
  client: Queryable,
  worker: string,
  completions: readonly Completion[],
): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ lost: string }>(DONE_MANY, [
    completions.map(({ job }) => job.id),
    completions.map(({ job }) => job.token),
    completions.map(({ attempt }) => attempt.durationMs),
    completions.map(({ attempt }) => attempt.traceId),
    worker,
  ]);
  return new Set(rows.map((row) => row.lost));
}
