// Which workers live at this moment: the one place that knows how to tell.

/** The class of our session locks: the four letters of "ukem". */
export const WORKER_LOCKS = 0x756b656d;

/** The numbers of the workers whose session holds its lock. */
export const LOCKED_NUMBERS = `
select l.objid::bigint as number
from pg_locks l
where l.locktype = 'advisory' and l.classid::bigint = ${WORKER_LOCKS} and l.objsubid = 2 and l.granted
  and l.database = (select d.oid from pg_database d where d.datname = current_database())`;

/**
 * Whether the worker `w` lives. Its row alone does not tell: the last one to die has nobody left who ends it. Its session's
 * lock does; without a session to look at, one that has not been heard of for a lease is missing.
 */
export const isAlive = (lockedNumbers: string) => `
case
  when w.has_session then w.number in (${lockedNumbers})
  else w.seen_at > ukemi.now() - w.lease_ms * interval '1 ms'
end`;

/** The handlers of live workers, one row for each worker and handler. */
export const OFFERED = `
select w.id as worker, h.name as handler
from ukemi.workers w
cross join lateral unnest(w.handlers) as h (name)
where w.ended_at is null and ${isAlive(LOCKED_NUMBERS)}`;
