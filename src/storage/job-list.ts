// Reading jobs of every state: lists with filters and a cursor.
import { timeOf, type Page } from "./conditions.ts";
import { isUuid } from "./ids.ts";
import type { Queryable } from "./postgres.ts";
import type { JobKind, JobState } from "./states.ts";
import { sift, type Sieve, type SiftOptions } from "./sift.ts";

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
  /** The worker that holds it now: its id, or host/pid. */
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
  readonly kind: JobKind;
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

type Row = Omit<ListedJob, "id" | "created_at" | "run_at"> & {
  readonly id: string;
  readonly created_at: string;
  readonly run_at: string;
};

const WORKERS =
  "select id from ukemi.workers where id::text = lower(?::text) or host || '/' || pid = ?::text";

const COLUMNS = {
  select: `t.id::text, t.subscription as handler, t.queue, t.kind, t.state, t.event, e.event_id, e.type, t.tenant, t.key,
    t.priority, t.attempt as attempts, t.max_attempts, t.recoveries, t.error_class, t.error_message,
    to_json(t.created_at) as created_at, to_json(t.run_at) as run_at, to_json(t.started_at) as started_at,
    to_json(t.finished_at) as finished_at, t.worker`,
  joins: "left join ukemi.events e on e.id = t.event",
};

/** Lists jobs, newest first. Rows that are added while a reader pages do not shift the pages. */
export async function listJobs(
  client: Queryable,
  filter: JobFilter,
  options: SiftOptions,
): Promise<Page<ListedJob>> {
  // a sender's id may look like one of ours
  const byOurs = filter.event !== undefined && isUuid(filter.event) ? "or id = ?::text::uuid" : "";
  const isIndexed = filter.state !== "done" && filter.state !== "cancelled";
  const sieve: Sieve = {
    table: "ukemi.jobs",
    time: "created_at",
    found: [
      ["tenant = ?", filter.tenant],
      ["tenant = any(?::text[])", filter.tenants],
      [`worker in (${WORKERS}) and state = 'running'`, filter.worker],
      [`event in (select id from ukemi.events where event_id = ?::text ${byOurs})`, filter.event],
      // the states on the way and the dead have indexes
      ["state = ?", isIndexed ? filter.state : undefined],
    ],
    told: [
      ["state = ?", isIndexed ? undefined : filter.state],
      ["queue = ?", filter.queue],
      ["subscription = ?", filter.handler],
      ["key = ?", filter.key],
    ],
    since: filter.since,
    until: filter.until,
  };
  const { items, ...rest } = await sift<Row>(client, sieve, COLUMNS, options);
  const jobs = items.map((row) => ({
    ...row,
    id: Number(row.id),
    created_at: new Date(row.created_at),
    run_at: new Date(row.run_at),
    started_at: timeOf(row.started_at),
    finished_at: timeOf(row.finished_at),
  }));
  return { items: jobs, ...rest };
}
