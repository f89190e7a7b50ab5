// Which dead letters are meant: the filter that lists, groups, previews and changes share.
import { isUuid } from "./ids.ts";
import type { Death } from "./states.ts";

/** Which dead letters; every field narrows it. */
export interface DeadFilter {
  readonly handler?: string;
  readonly queue?: string;
  readonly type?: string;
  readonly source?: string;
  readonly tenant?: string;
  /** A business id found in the event, such as `pi_…`. */
  readonly ref?: string;
  /** The event, by our id or by the sender's. */
  readonly event?: string;
  readonly errorClass?: string;
  readonly death?: Death;
  /** Died at this time or later. */
  readonly since?: Date;
  /** Died before this time. */
  readonly until?: Date;
  readonly ids?: readonly number[];
  /** Only those of these tenants: what a caller bound to tenants may see. */
  readonly tenants?: readonly string[];
}

/** A condition in SQL with the values of its parameters. */
export interface Condition {
  readonly sql: string;
  readonly values: unknown[];
}

/** A dead job `j`, whose event `e` is joined. Begins to number its parameters after the given ones. */
export function whereDead(filter: DeadFilter, before: readonly unknown[] = []): Condition {
  const values = [...before];
  const where = ["j.state = 'dead'"];
  const add = (clause: string, value: unknown) => {
    if (value === undefined) return;
    values.push(value);
    where.push(clause.replaceAll("?", `$${values.length}`));
  };
  add("j.subscription = ?", filter.handler);
  add("j.queue = ?", filter.queue);
  add("e.type = ?", filter.type);
  add("e.source = ?", filter.source);
  add("j.tenant = ?", filter.tenant);
  add("j.event in (select ukemi.events_with_ref(?))", filter.ref);
  // a sender's id may look like one of ours
  add(
    "j.event in (select id from ukemi.events where event_id = ?::text or id = ?::text::uuid)",
    uuidOf(filter.event),
  );
  add("j.event in (select id from ukemi.events where event_id = ?)", otherOf(filter.event));
  add("j.error_class = ?", filter.errorClass);
  add("j.death = ?", filter.death);
  add("j.finished_at >= ?", filter.since);
  add("j.finished_at < ?", filter.until);
  add("j.id = any(?::bigint[])", filter.ids);
  add("j.tenant = any(?::text[])", filter.tenants);
  return { sql: where.join(" and "), values };
}

const uuidOf = (event: string | undefined) => (event !== undefined && isUuid(event) ? event : undefined);
const otherOf = (event: string | undefined) => (event !== undefined && !isUuid(event) ? event : undefined);

/** True where the event of the job `j` is there, and its body no longer is: no handler could run. */
export const BODY_GONE = `(
  e.id is not null
  and not exists (select from ukemi.event_bodies b where b.event = e.id and b.received_at = e.received_at)
)`;

/** When the body of the event `e` was erased; null where it was not. */
export const ERASED_AT = "(select x.erased_at from ukemi.erasures x where x.event = e.id)";

/** The refs of the event `e` as JSON. */
export const REFS = `
coalesce((
  select jsonb_agg(jsonb_build_object('kind', r.kind, 'id', r.ref) order by r.kind, r.ref)
  from ukemi.refs_of(e.id) as r
), '[]')`;
