// Reading dead letters: lists with filters and a cursor, and groups by error class.
import { REFS, whereDead, type DeadFilter } from "./dead-filter.ts";
import type { Queryable } from "./postgres.ts";
import type { Death, JobKind } from "./states.ts";

/** A business id found in an event. */
export interface Ref {
  readonly kind: string;
  readonly id: string;
}

/** A dead letter as the API and the command line show it. */
export interface DeadLetter {
  readonly id: number;
  readonly handler: string;
  readonly queue: string;
  readonly kind: JobKind;
  /** Our id of the event; null for tasks. */
  readonly event: string | null;
  /** The sender's id of the event. */
  readonly event_id: string | null;
  readonly source: string | null;
  readonly type: string | null;
  readonly tenant: string | null;
  readonly refs: readonly Ref[];
  readonly death: Death | null;
  readonly error_class: string | null;
  readonly error_message: string | null;
  /** Tries since it was made, or replayed. */
  readonly attempts: number;
  /** How often its worker died while it ran. */
  readonly recoveries: number;
  /** How often the sender's resend brought it back. */
  readonly revivals: number;
  readonly created_at: Date;
  readonly died_at: Date;
}

/** One page of dead letters. */
export interface DeadPage {
  readonly items: readonly DeadLetter[];
  /** Where the next page begins; absent on the last. */
  readonly cursor?: string;
}

/** A row as it comes: its times and its id are text. */
export type Times<T, K extends keyof T> = Omit<T, K | "id"> & { readonly [key in K]: string } & {
  readonly id: string;
};

/** What is told of a dead letter, and of any job. */
export const FACTS = `
  j.id, j.subscription as handler, j.queue, j.kind, j.event, e.event_id, e.source, e.type, j.tenant,
  ${REFS} as refs,
  j.death, j.error_class, j.error_message, j.attempt as attempts, j.recoveries, j.revivals,
  -- as JSON: the text of a plain timestamp depends on the session's DateStyle
  to_json(j.created_at) as created_at, to_json(j.finished_at) as died_at`;

/** Lists dead letters, newest first. `after` is the cursor of the page before; one that is no cursor gives the first page. */
export async function listDead(
  client: Queryable,
  filter: DeadFilter,
  page: { readonly limit: number; readonly after?: string },
): Promise<DeadPage> {
  const after = page.after === undefined ? undefined : readCursor(page.after);
  const where = whereDead(filter, [page.limit + 1, after?.diedUs ?? null, after?.id ?? null]);
  const { rows } = await client.query<Times<DeadLetter, "created_at" | "died_at"> & { died_us: string }>(
    `select ${FACTS}, (extract(epoch from j.finished_at) * 1000000)::bigint as died_us
     from ukemi.jobs j
     left join ukemi.events e on e.id = j.event
     where ${where.sql}
       and ($2::bigint is null or (j.finished_at, j.id) < (${timeOfUs("$2")}, $3::bigint))
     order by j.finished_at desc, j.id desc
     limit $1`,
    where.values,
  );
  const shown = rows.slice(0, page.limit);
  const last = rows.length > page.limit ? shown.at(-1) : undefined;
  return {
    items: shown.map((shownRow) => {
      const { died_us: _, ...row } = shownRow;
      return {
        ...row,
        id: Number(row.id),
        created_at: new Date(row.created_at),
        died_at: new Date(row.died_at),
      };
    }),
    ...(last ? { cursor: `${last.died_us}.${last.id}` } : {}),
  };
}

/** A time from its microseconds since 1970: a Date would lose three digits. */
export const timeOfUs = (parameter: string) =>
  `timestamptz 'epoch' + ${parameter}::bigint * interval '1 microsecond'`;

/** The place in the list where a page ended; undefined where the text is no cursor. */
export function readCursor(text: string): { readonly diedUs: string; readonly id: string } | undefined {
  const [, diedUs, id] = /^(\d{1,16})\.(\d{1,16})$/.exec(text) ?? [];
  return diedUs === undefined || id === undefined ? undefined : { diedUs, id };
}

/** Dead letters of one handler that died of the same error. */
export interface DeadGroup {
  readonly error_class: string | null;
  readonly handler: string;
  readonly count: number;
  readonly oldest_at: Date;
  readonly newest_at: Date;
  /** What the latest made of them says. */
  readonly sample_message: string | null;
  readonly sample_id: number;
}

const GROUPS_MAX = 200;

/** Groups dead letters by error class and handler, the largest first. */
export async function groupDead(client: Queryable, filter: DeadFilter): Promise<readonly DeadGroup[]> {
  const where = whereDead(filter);
  const { rows } = await client.query<{
    error_class: string | null;
    handler: string;
    count: string;
    oldest_at: string;
    newest_at: string;
    sample_message: string | null;
    sample_id: string;
  }>(
    `with groups as (
       select j.error_class, j.subscription as handler, count(*) as count,
         min(j.finished_at) as oldest_at, max(j.finished_at) as newest_at, max(j.id) as sample_id
       from ukemi.jobs j
       left join ukemi.events e on e.id = j.event
       where ${where.sql}
       group by j.error_class, j.subscription
       order by count desc, max(j.finished_at) desc
       limit ${GROUPS_MAX}
     )
     select g.error_class, g.handler, g.count, to_json(g.oldest_at) as oldest_at, to_json(g.newest_at) as newest_at,
       s.error_message as sample_message, g.sample_id
     from groups g
     join ukemi.jobs s on s.id = g.sample_id
     order by g.count desc, g.newest_at desc`,
    where.values,
  );
  return rows.map((row) => ({
    ...row,
    count: Number(row.count),
    sample_id: Number(row.sample_id),
    oldest_at: new Date(row.oldest_at),
    newest_at: new Date(row.newest_at),
  }));
}
