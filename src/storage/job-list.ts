// Reading jobs of every state: lists with filters and a cursor.
import { createConditions, pageOf, timeOf, type Page } from "./conditions.ts";
import { isUuid } from "./ids.ts";
import type { Queryable } from "./postgres.ts";

/** Where a job is on its way. */
export type JobState = "scheduled" | "ready" | "waiting" | "running" | "done" | "dead" | "cancelled";

export const JOB_STATES: readonly JobState[] = [
  "scheduled",
  "ready",
  "waiting",
  "running",
  "done",
  "dead",
  "cancelled",
];

/** Which jobs to list, newest first. */
export interface JobFilter {
  readonly state?: JobState;
  readonly queue?: string;
  readonly handler?: string;
  readonly tenant?: string;
  /** Only of these tenants. */
  readonly tenants?: readonly string[];
  readonly key?: string;
  /** The event, by our id or by the sender's. */
  readonly event?: string;
  /** The worker that holds it now. */
  readonly worker?: string;
  /** Made at this time or later. */
  readonly since?: Date;
  /** Made before this time. */
  readonly until?: Date;
}

/** A job as the API and the command line show it. */
export interface ListedJob {
  readonly id: number;
  readonly handler: string;
  readonly queue: string;
  /** `handler` for jobs about an event, `task` for the others. */
  readonly kind: "handler" | "task";
  readonly state: JobState;
  readonly event: string | null;
  readonly event_id: string | null;
  readonly type: string | null;
  readonly tenant: string | null;
  readonly key: string | null;
  readonly priority: number;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly recoveries: number;
  readonly error_class: string | null;
  readonly error_message: string | null;
  readonly created_at: Date;
  /** When it is or was due. */
  readonly run_at: Date;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  readonly worker: string | null;
}

/** Lists jobs, newest first. Rows that are added while a reader pages do not shift the pages. */
export async function listJobs(
  client: Queryable,
  filter: JobFilter,
  page: { readonly limit: number; readonly before?: string },
): Promise<Page<ListedJob>> {
  const conditions = createConditions();
  conditions.add("j.state = ?", filter.state);
  conditions.add("j.queue = ?", filter.queue);
  conditions.add("j.subscription = ?", filter.handler);
  conditions.add("j.tenant = ?", filter.tenant);
  conditions.add("j.tenant = any(?::text[])", filter.tenants);
  conditions.add("j.key = ?", filter.key);
  conditions.add("j.worker = ? and j.state = 'running'", filter.worker);
  conditions.add("j.created_at >= ?", filter.since);
  conditions.add("j.created_at < ?", filter.until);
  if (filter.event !== undefined) {
    // a sender's id may look like one of ours
    const byOurs = isUuid(filter.event) ? "or id = ?::text::uuid" : "";
    conditions.add(
      `j.event in (select id from ukemi.events where event_id = ?::text ${byOurs})`,
      filter.event,
    );
  }
  conditions.add("j.id < ?::bigint", page.before);
  type Row = Omit<ListedJob, "id" | "created_at" | "run_at"> & {
    readonly id: string;
    readonly created_at: string;
    readonly run_at: string;
  };
  const { rows } = await client.query<Row>(
    `select j.id, j.subscription as handler, j.queue, j.kind, j.state, j.event, e.event_id, e.type, j.tenant, j.key,
       j.priority, j.attempt as attempts, j.max_attempts, j.recoveries, j.error_class, j.error_message,
       to_json(j.created_at) as created_at, to_json(j.run_at) as run_at, to_json(j.started_at) as started_at,
       to_json(j.finished_at) as finished_at, j.worker
     from ukemi.jobs j
     left join ukemi.events e on e.id = j.event
     ${conditions.where()}
     order by j.id desc
     limit ${conditions.value(page.limit + 1)}`,
    conditions.values,
  );
  const jobs = rows.map((row) => ({
    ...row,
    id: Number(row.id),
    created_at: new Date(row.created_at),
    run_at: new Date(row.run_at),
    started_at: timeOf(row.started_at),
    finished_at: timeOf(row.finished_at),
  }));
  return pageOf(jobs, page.limit, (job) => String(job.id));
}
