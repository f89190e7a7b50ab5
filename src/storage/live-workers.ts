// Which workers live at this moment, for whoever looks from outside.
import { WORKER_LOCKS } from "./workers.ts";

/**
 * The handlers of live workers, one row for each worker and handler. A row of `workers` alone does not tell: the last one
 * to die has nobody left who ends it. Its session's lock does.
 */
export const OFFERED = `
select w.id as worker, h.name as handler
from ukemi.workers w
cross join lateral unnest(w.handlers) as h (name)
where w.ended_at is null
  and case
    when w.has_session then w.number in (
      select l.objid::bigint
      from pg_locks l
      where l.locktype = 'advisory' and l.classid::bigint = ${WORKER_LOCKS} and l.objsubid = 2 and l.granted
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
    )
    else w.seen_at > ukemi.now() - w.lease_ms * interval '1 ms'
  end`;
