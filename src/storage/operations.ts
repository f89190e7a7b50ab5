// Operations as people see them: how far each has come, what became of every item, and what it waits for.
import { OFFERED } from "./live-workers.ts";
import type { Queryable } from "./postgres.ts";

/** What an operation does to its jobs. */
export type OperationKind = "replay" | "drop";

/** Every state of an operation. */
export const OPERATION_STATES = ["running", "stopped", "aborted", "done"] as const;

/** `stopped` is by itself, above the limit of failures; `aborted` by a person. */
export type OperationState = (typeof OPERATION_STATES)[number];

/** Every state of an item. */
export const ITEM_STATES = ["waiting", "replayed", "done", "dead", "dropped", "skipped", "gone"] as const;

/**
 * What became of a job of an operation: `replayed` is at work again, `dead` died again, `skipped` was left as it is, and
 * `gone` is no longer there.
 */
export type ItemState = (typeof ITEM_STATES)[number];

/** The canary's first item, its ten next, and all others. */
export type Stage = "one" | "ten" | "all";

/** How many items are in each state. */
export type ItemCounts = Readonly<Record<ItemState, number>>;

/** An operation as the API and the command line show it. */
export interface ListedOperation {
  readonly id: string;
  readonly name: string;
  readonly kind: OperationKind;
  readonly reason: string;
  readonly actor: string;
  /** The tenants of the caller who made it; null where it was bound to none. */
  readonly tenants: readonly string[] | null;
  /** What was asked for: `ids`, `filter` or `all`. */
  readonly selection: Readonly<Record<string, unknown>>;
  readonly state: OperationState;
  /** Null: as fast as it goes. */
  readonly rate_per_second: number | null;
  readonly canary: boolean;
  readonly stage: Stage;
  /** Which share of those that ended may have died again; null for drops. */
  readonly failure_limit: number | null;
  /** Why it does not run: null where it does, or is done. */
  readonly stop_reason: string | null;
  readonly total: number;
  readonly counts: ItemCounts;
  /** The share of its items that have ended, from 0 to 1. */
  readonly progress: number;
  /** How many items have ended per second since it runs; null before the first. */
  readonly ended_per_second: number | null;
  /** Null where it does not run, or nothing can be said yet. */
  readonly estimated_end_at: Date | null;
  readonly created_at: Date;
  readonly started_at: Date | null;
  readonly stopped_at: Date | null;
  readonly finished_at: Date | null;
  /** How long a process should have looked at it already, in seconds; 0 where none has to. */
  readonly overdue_seconds: number;
  /** Why its last step failed; null where it did not. */
  readonly fault: string | null;
}

interface Row extends Omit<
  ListedOperation,
  | "counts"
  | "progress"
  | "ended_per_second"
  | "estimated_end_at"
  | "created_at"
  | "started_at"
  | "stopped_at"
  | "finished_at"
> {
  readonly counts: ItemCounts;
  readonly ended_before: number;
  readonly ran_seconds: number;
  readonly now: string;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly stopped_at: string | null;
  readonly finished_at: string | null;
}

const COLUMNS = `
  o.id, o.name, o.kind, o.reason, o.actor, o.tenants, o.selection, o.state, o.rate_per_second, o.canary, o.stage,
  o.failure_limit, o.stop_reason, o.total, o.ended_before, o.fault,
  case
    when o.state = 'running' then greatest(0, extract(epoch from ukemi.now() - o.next_at))::float8
    else 0
  end as overdue_seconds,
  json_build_object(${ITEM_STATES.map((state) => `'${state}', o.${state}`).join(", ")}) as counts,
  extract(epoch from coalesce(o.finished_at, o.stopped_at, ukemi.now()) - o.running_since)::float8 as ran_seconds,
  to_json(ukemi.now()) as now, to_json(o.created_at) as created_at, to_json(o.started_at) as started_at,
  to_json(o.stopped_at) as stopped_at, to_json(o.finished_at) as finished_at`;

/** Whether a caller bound to the tenants of this parameter may see the operation `o`. */
export const visible = (parameter: string) =>
  `(${parameter}::text[] is null or o.tenants <@ ${parameter}::text[])`;

/** Which operations, and how many of them. */
export interface OperationQuery {
  readonly state?: OperationState | undefined;
  readonly limit: number;
  /** The id of the last one on the page before. */
  readonly after?: string | undefined;
  readonly tenants?: readonly string[] | undefined;
}

/** Lists operations, the newest first, and one more than asked for where there are more. */
export async function listOperations(
  client: Queryable,
  { state, limit, after, tenants }: OperationQuery,
): Promise<readonly ListedOperation[]> {
  const { rows } = await client.query<Row>(
    `select ${COLUMNS}
     from ukemi.operations o
     where ${visible("$1")}
       and ($2::text is null or o.state = $2::text)
       and ($3::uuid is null or o.id < $3::uuid)
     order by o.id desc
     limit $4::int + 1`,
    [tenants ?? null, state ?? null, after ?? null, limit],
  );
  return rows.map(listed);
}

/** One operation; undefined where there is none that the caller may see. */
export async function readOperation(
  client: Queryable,
  id: string,
  tenants: readonly string[] | undefined,
): Promise<ListedOperation | undefined> {
  const { rows } = await client.query<Row>(
    `select ${COLUMNS} from ukemi.operations o where o.id = $1::uuid and ${visible("$2")}`,
    [id, tenants ?? null],
  );
  return rows[0] && listed(rows[0]);
}

function listed({ ended_before, ran_seconds, now, ...row }: Row): ListedOperation {
  const { waiting, replayed } = row.counts;
  const ended = row.total - waiting - replayed;
  const speed = ended > ended_before && ran_seconds > 0 ? (ended - ended_before) / ran_seconds : null;
  // the canary's pace says nothing about that of all the others
  const foreseen = row.state === "running" && row.stage === "all" && speed !== null;
  const seconds = foreseen
    ? Math.max((waiting + replayed) / speed, row.rate_per_second === null ? 0 : waiting / row.rate_per_second)
    : undefined;
  return {
    ...row,
    progress: row.total === 0 ? 1 : ended / row.total,
    ended_per_second: speed,
    estimated_end_at: seconds === undefined ? null : timeOf(Date.parse(now) + seconds * 1000),
    created_at: new Date(row.created_at),
    started_at: dateOf(row.started_at),
    stopped_at: dateOf(row.stopped_at),
    finished_at: dateOf(row.finished_at),
  };
}

const dateOf = (text: string | null) => (text === null ? null : new Date(text));

/** At a crawl the end may lie beyond what a date can hold. */
const timeOf = (ms: number) => (Math.abs(ms) <= 8.64e15 ? new Date(ms) : null);

/** Why jobs that were replayed have not ended. */
export type Delay = "running" | "queue_paused" | "no_worker" | "later" | "key" | "ready";

/** Replayed jobs of one handler and queue that have not ended, for the same reason. */
export interface AtWork {
  readonly delay: Delay;
  readonly handler: string;
  readonly queue: string;
  readonly count: number;
  /** Of those that are tried again later: when the first is. */
  readonly next_at: Date | null;
}

/** Says what the replayed items of an operation that have not ended are waiting for, the most frequent first. */
export async function readAtWork(client: Queryable, id: string): Promise<readonly AtWork[]> {
  const { rows } = await client.query<Omit<AtWork, "next_at"> & { next_at: string | null }>(
    `with offered as materialized (${OFFERED}),
     open as (
       select j.subscription as handler, j.queue, j.run_at,
         case
           when j.state = 'running' then 'running'
           when q.paused then 'queue_paused'
           when j.subscription not in (select handler from offered) then 'no_worker'
           when j.state = 'scheduled' then 'later'
           when j.state = 'waiting' then 'key'
           else 'ready'
         end as delay
       from ukemi.operation_items i
       join ukemi.jobs j on j.id = i.job
       left join ukemi.queues q on q.name = j.queue
       where i.operation = $1::uuid and i.state = 'replayed'
         and j.state in ('scheduled', 'ready', 'waiting', 'running')
     )
     select delay, handler, queue, count(*)::int as count,
       to_json(min(run_at) filter (where delay = 'later')) as next_at
     from open
     group by delay, handler, queue
     order by 4 desc, 1, 2, 3`,
    [id],
  );
  return rows.map((row) => ({ ...row, next_at: dateOf(row.next_at) }));
}

/** What became of one job of an operation. */
export interface OperationItem {
  readonly position: number;
  readonly job: number;
  readonly state: ItemState;
  /** Null where the job is no longer there. */
  readonly handler: string | null;
  readonly queue: string | null;
  /** Our id of the event; null for tasks. */
  readonly event: string | null;
  /** The sender's id of the event. */
  readonly event_id: string | null;
  readonly tenant: string | null;
  /** Of one that died again. */
  readonly error_class: string | null;
  /** Why it died again, or was skipped. */
  readonly message: string | null;
  readonly changed_at: Date;
}

/** Which items of an operation, and how many of them. */
export interface ItemQuery {
  readonly operation: string;
  readonly state?: ItemState | undefined;
  readonly limit: number;
  /** The position of the last one on the page before. */
  readonly after: number;
}

/** Lists items in their order, and one more than asked for where there are more. */
export async function listItems(client: Queryable, query: ItemQuery): Promise<readonly OperationItem[]> {
  const { rows } = await client.query<
    Omit<OperationItem, "job" | "changed_at"> & { job: string; changed_at: string }
  >(
    `select i.position, i.job, i.state, j.subscription as handler, j.queue, j.event, e.event_id, j.tenant,
       i.error_class, i.message, to_json(i.changed_at) as changed_at
     from ukemi.operation_items i
     join ukemi.operations o on o.id = i.operation
     -- an id that a bound caller named may be that of another tenant's job
     left join ukemi.jobs j on j.id = i.job and (o.tenants is null or j.tenant = any(o.tenants))
     left join ukemi.events e on e.id = j.event
     where i.operation = $1::uuid and i.position > $2::int
       and ($3::text is null or i.state = $3::text)
     order by i.position
     limit $4::int + 1`,
    [query.operation, query.after, query.state ?? null, query.limit],
  );
  return rows.map((row) => ({ ...row, job: Number(row.job), changed_at: new Date(row.changed_at) }));
}

/** How many operations have not come to their end. */
export async function countOpen(client: Queryable): Promise<{ running: number; stopped: number }> {
  const { rows } = await client.query<{ running: number; stopped: number }>(
    `select count(*) filter (where state = 'running')::int as running,
       count(*) filter (where state = 'stopped')::int as stopped
     from ukemi.operations`,
  );
  return rows[0]!;
}
