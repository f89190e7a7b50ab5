// Reading workers: who lives, who left, and what each has in hand.
import { timeOf } from "./conditions.ts";
import { isAlive, LOCKED_NUMBERS } from "./live-workers.ts";
import type { Queryable } from "./postgres.ts";

/** A worker as the API and the command line show it. */
export interface ListedWorker {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  /** `live`, `missing` where it has not said goodbye and is not heard of, else how it ended. */
  readonly state: "live" | "missing" | "stopped" | "replaced" | "lost";
  readonly handlers: readonly string[];
  readonly queues: readonly string[];
  readonly running: number;
  /** False behind a transaction pooler: its death is then noticed only when its leases lapse. */
  readonly has_session: boolean;
  readonly started_at: Date;
  readonly seen_at: Date;
  readonly ended_at: Date | null;
}

const WORKERS_MAX = 500;

/** Lists the workers, those that live first, then the newest; those that have ended only where asked. */
export async function listWorkers(client: Queryable, withEnded: boolean): Promise<readonly ListedWorker[]> {
  type Row = { readonly [Name in keyof ListedWorker]: ListedWorker[Name] };
  const { rows } = await client.query<Row>(
    `select w.id, w.host, w.pid, w.version,
       case when w.ended_at is not null then w.end_reason when ${isAlive(LOCKED_NUMBERS)} then 'live' else 'missing' end
         as state,
       w.handlers, w.queues,
       (select count(*)::int from ukemi.jobs j where j.worker = w.id and j.state = 'running') as running,
       w.has_session, to_json(w.started_at) as started_at, to_json(w.seen_at) as seen_at, to_json(w.ended_at) as ended_at
     from ukemi.workers w
     where w.ended_at is null or $1::boolean
     order by w.ended_at is not null, w.number desc
     limit ${WORKERS_MAX}`,
    [withEnded],
  );
  return rows.map((row) => ({
    ...row,
    started_at: new Date(row.started_at),
    seen_at: new Date(row.seen_at),
    ended_at: timeOf(row.ended_at),
  }));
}
