// Reading stored events: lists with filters and a cursor, and one event with its refs and jobs.
import { isUuid, uuidv7Floor } from "./ids.ts";
import type { Queryable } from "./postgres.ts";
import type { EventStatus, JobState } from "./states.ts";

/** Which events to list, newest first. */
export interface EventFilter {
  readonly source?: string;
  readonly type?: string;
  /** A business id found in the event, such as `pi_…`. */
  readonly ref?: string;
  readonly tenant?: string;
  /** Only of these tenants. */
  readonly tenants?: readonly string[];
  readonly status?: EventStatus;
  readonly since?: Date;
  readonly until?: Date;
  /** Only events older than this id: where the page before ended. */
  readonly before?: string;
  readonly limit: number;
}

/** An event as the API and the command line show it. */
export interface ListedEvent {
  readonly id: string;
  readonly source: string;
  readonly account: string;
  readonly livemode: boolean;
  readonly event_id: string;
  readonly type: string;
  readonly tenant: string | null;
  readonly refs: readonly { readonly kind: string; readonly id: string }[];
  readonly status: EventStatus;
  readonly origin: "webhook" | "reconcile" | "api" | "test";
  readonly received_at: Date;
  readonly occurred_at: Date | null;
  readonly processed_at: Date | null;
  readonly error_message: string | null;
  readonly jobs: readonly { readonly id: number; readonly handler: string; readonly state: JobState }[];
}

const SELECT = `
select
  e.id, e.source, e.account, e.livemode, e.event_id, e.type, e.tenant,
  coalesce((
    select json_agg(json_build_object('kind', r.kind, 'id', r.ref) order by r.kind, r.ref)
    from ukemi.refs_of(e.id) as r
  ), '[]') as refs,
  coalesce(o.status, p.status, 'pending') as status,
  -- as JSON: the text of a plain timestamp depends on the session's DateStyle
  e.origin, to_json(e.received_at) as received_at, to_json(e.occurred_at) as occurred_at,
  to_json(coalesce(o.processed_at, p.processed_at)) as processed_at, o.error_message,
  coalesce((
    select json_agg(json_build_object('id', j.id, 'handler', j.subscription, 'state', j.state) order by j.id)
    from ukemi.jobs j
    where j.event = e.id
  ), '[]') as jobs
from ukemi.events e
left join ukemi.event_outcomes o on o.event = e.id
-- jobs are asked only where nothing is written
left join lateral ukemi.plain_success(case when o.event is null then e.id end) as p on true`;

/** Events with work to do, from the index of unfinished jobs: looking for what lacks an outcome would read all history. */
const UNFINISHED = `
select event from ukemi.jobs where state in ('scheduled', 'ready', 'waiting', 'running')`;

/** Whatever is no success was written down, and is found by its index. */
const WRITTEN = `select event from ukemi.event_outcomes where status = ?`;

/** A process clock and the database's may differ a little: ids are only a coarse bound, `received_at` the exact one. */
const ID_SLACK_MS = 10 * 60_000;

/** Lists events, newest first. Rows that arrive while a reader pages do not shift the pages. */
export async function listEvents(client: Queryable, filter: EventFilter): Promise<ListedEvent[]> {
  const values: unknown[] = [];
  const where: string[] = [];
  const add = (clause: string, value: unknown) => {
    values.push(value);
    where.push(clause.replaceAll("?", `$${values.length}`));
  };
  if (filter.source !== undefined) add("e.source = ?", filter.source);
  if (filter.type !== undefined) add("e.type = ?", filter.type);
  if (filter.tenant !== undefined) add("e.tenant = ?", filter.tenant);
  if (filter.tenants !== undefined) add("e.tenant = any(?::text[])", filter.tenants);
  if (filter.ref !== undefined) add("e.id in (select ukemi.events_with_ref(?))", filter.ref);
  if (filter.status === "pending")
    where.push(`coalesce(o.status, p.status, 'pending') = 'pending' and e.id in (${UNFINISHED})`);
  else if (filter.status === "success") where.push("coalesce(o.status, p.status) = 'success'");
  else if (filter.status !== undefined) add(`e.id in (${WRITTEN})`, filter.status);
  if (filter.since) {
    add("e.id >= ?", uuidv7Floor(filter.since.getTime() - ID_SLACK_MS));
    add("e.received_at >= ?", filter.since);
  }
  if (filter.until) {
    add("e.id < ?", uuidv7Floor(filter.until.getTime() + ID_SLACK_MS));
    add("e.received_at < ?", filter.until);
  }
  if (filter.before !== undefined) add("e.id < ?", filter.before);
  values.push(filter.limit);
  const { rows } = await client.query<EventRow>(
    `${SELECT}
     ${where.length > 0 ? `where ${where.join(" and ")}` : ""}
     order by e.id desc
     limit $${values.length}`,
    values,
  );
  return rows.map(toListed);
}

/** Finds one event by our id or by the sender's; the newest where several sources use the same id. */
export async function findEvent(
  client: Queryable,
  id: string,
  tenants?: readonly string[],
): Promise<ListedEvent | undefined> {
  if (id.includes("\u0000")) return undefined; // PostgreSQL's text cannot hold it, so no event has it
  // a sender's id may look like one of ours: GitHub's are uuids too
  for (const column of isUuid(id) ? ["e.id", "e.event_id"] : ["e.event_id"]) {
    const { rows } = await client.query<EventRow>(
      `${SELECT}
       where ${column} = $1 and ($2::text[] is null or e.tenant = any($2::text[]))
       order by e.id desc
       limit 1`,
      [id, tenants ?? null],
    );
    if (rows[0]) return toListed(rows[0]);
  }
  return undefined;
}

/** A row as it comes: its times are text. */
type EventRow = Omit<ListedEvent, "received_at" | "occurred_at" | "processed_at"> & {
  readonly received_at: string;
  readonly occurred_at: string | null;
  readonly processed_at: string | null;
};

function toListed(row: EventRow): ListedEvent {
  return {
    ...row,
    received_at: new Date(row.received_at),
    occurred_at: row.occurred_at === null ? null : new Date(row.occurred_at),
    processed_at: row.processed_at === null ? null : new Date(row.processed_at),
  };
}
