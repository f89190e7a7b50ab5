// What handlers did, in the order in which they did it: the log by which tests of queues judge.
import type { Queryable } from "../../src/storage/postgres.ts";

export interface Worked {
  /** The names in the order in which they were begun. */
  readonly begun: string[];
  readonly ended: string[];
  /** Keys of which two ran at the same time. */
  readonly overlaps: string[];
  /** Notes the beginning and the end of a piece of work, also of one that throws. */
  during<T>(name: string, key: string, work: () => Promise<T>): Promise<T>;
}

export function createWorked(): Worked {
  const running = new Set<string>();
  const begun: string[] = [];
  const ended: string[] = [];
  const overlaps: string[] = [];
  return {
    begun,
    ended,
    overlaps,
    async during(name, key, work) {
      if (running.has(key)) overlaps.push(`${key}: ${name}`);
      running.add(key);
      begun.push(name);
      try {
        return await work();
      } finally {
        running.delete(key);
        ended.push(name);
      }
    },
  };
}

/** Jobs as they lie in the table, made without a handler's say: for backlogs that nobody works on. */
export async function insertJobs(
  client: Queryable,
  jobs: {
    readonly count: number;
    readonly handler: string;
    readonly queue?: string;
    readonly state?: "ready" | "waiting";
    readonly key?: string;
    /** SQL over `n`, which counts from 1. */
    readonly tenant?: string;
    readonly priority?: number;
  },
): Promise<void> {
  const {
    count,
    handler,
    queue = "default",
    state = "ready",
    key = null,
    tenant = "null",
    priority = 0,
  } = jobs;
  await client.query(
    `insert into ukemi.jobs
       (queue, kind, subscription, tenant, key, key_held, state, priority, max_attempts, policy, run_at, created_at)
     select $1, 'task', $2, ${tenant}, $3::text, $3::text is not null and $4::text = 'ready', $4::text, $5, 4, 'quick',
       ukemi.now(), ukemi.now()
     from generate_series(1, $6::int) as n`,
    [queue, handler, key, state, priority, count],
  );
}

/** Moves the clock that leases and due times are compared with. Only while nothing runs: leases would lapse. */
export async function moveClock(client: Queryable, shift: string): Promise<void> {
  await client.query("update ukemi.clock set shift = $1::interval", [shift]);
}
