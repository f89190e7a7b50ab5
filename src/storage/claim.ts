// Claiming: a worker leases jobs that are ready, with everything their handlers need to know.
import { UkemiError } from "../errors.ts";
import { createKeyring, type Keyring } from "./keyring.ts";
import type { Queryable } from "./postgres.ts";

/** What a lease is known by: whoever holds another token for the job changes nothing. */
export interface Lease {
  readonly id: string;
  readonly token: string;
}

/** The event that a job is about, as it was stored. */
export interface JobEvent {
  /** Our id of the event. */
  readonly id: string;
  readonly source: string;
  readonly account: string;
  readonly livemode: boolean;
  readonly eventId: string;
  readonly type: string;
  readonly receivedAt: Date;
  readonly traceparent: string | null;
  /** The raw bytes; null where they were pruned or erased, or cannot be opened. */
  readonly body: Buffer | null;
  /** JSON text of the headers kept. */
  readonly headers: string | null;
  /** Why the body that is there cannot be read: `body_sealed` or `body_altered`. */
  readonly unreadable?: UkemiError;
}

/** A job that this worker holds. */
export interface Job extends Lease {
  readonly queue: string;
  readonly kind: string;
  /** The name of the handler that is to run. */
  readonly handler: string;
  readonly tenant: string | null;
  readonly key: string | null;
  /** Tries that have ended so far. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** How often it was running when its worker died. */
  readonly recoveries: number;
  /** How long it was due before it was claimed, in milliseconds. */
  readonly waitedMs: number;
  /** Undefined for jobs without an event. */
  readonly event: JobEvent | undefined;
  /** JSON text; null for jobs that are about an event. */
  readonly payload: string | null;
  /** How many have a say in what its event comes to: its jobs, this one included, and an outcome that was written before. */
  readonly siblings: number;
}

export interface ClaimRequest {
  readonly queue: string;
  /** The handlers that this worker has. */
  readonly handlers: readonly string[];
  readonly most: number;
  /** One job that was recovered before, rather than up to `most` that were not. */
  readonly alone: boolean;
  /** The last job of a claim behind which there is more of the same: the claim goes on there. */
  readonly behind?: string | undefined;
  /** The tenant whose job the last claim ended with: the next one begins behind it. */
  readonly afterTenant: string;
  readonly worker: string;
  /** Made by the caller, before it asks: a claim whose answer was lost is given back by it. */
  readonly token: string;
  readonly leaseMs: number;
}

const CLAIM = "select * from ukemi.claim_jobs($1, $2, $3, $4, $5, $6, $7, $8)";
const CLAIM_BEHIND = "select * from ukemi.claim_behind($4, $1, $2, $3, $5, $6, $7, $8)";

interface ClaimedRow {
  readonly id: string;
  readonly queue: string;
  readonly kind: string;
  readonly handler: string;
  readonly tenant: string | null;
  readonly key: string | null;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly recoveries: number;
  readonly waited_ms: number;
  readonly siblings: number;
  readonly payload: string | null;
  readonly event: string | null;
  readonly source: string;
  readonly account: string;
  readonly livemode: boolean;
  readonly event_id: string;
  readonly type: string;
  readonly received_ms: number;
  readonly traceparent: string | null;
  readonly body: Buffer | null;
  readonly headers: string | null;
  readonly key_id: string | null;
}

const NO_KEYS = createKeyring([]);

/**
 * Leases jobs to the worker; they are its own until the lease ends, is given back, or is taken away. Sealed bodies are
 * opened; a job whose body cannot be read says why.
 */
export async function claimJobs(
  client: Queryable,
  request: ClaimRequest,
  keyring: Keyring = NO_KEYS,
): Promise<Job[]> {
  const { rows } = await client.query<ClaimedRow>(request.behind === undefined ? CLAIM : CLAIM_BEHIND, [
    request.queue,
    request.handlers,
    request.most,
    request.behind ?? request.alone,
    request.afterTenant,
    request.worker,
    request.token,
    request.leaseMs,
  ]);
  const jobs: Job[] = [];
  for (const row of rows) {
    const content = row.key_id === null ? row : await openContent(client, row, keyring);
    jobs.push(toJob(row, request.token, content));
  }
  return jobs;
}

type EventContent = Pick<JobEvent, "body" | "headers" | "unreadable">;

async function openContent(client: Queryable, row: ClaimedRow, keyring: Keyring): Promise<EventContent> {
  const { event, body, headers, key_id: keyId } = row;
  if (event === null || body === null || headers === null) return { body: null, headers: null };
  try {
    return await keyring.open(client, event, { body, headers, keyId });
  } catch (error) {
    if (!(error instanceof UkemiError)) throw error; // the database is away: the whole claim is given back
    return { body: null, headers: null, unreadable: error };
  }
}

function toJob(row: ClaimedRow, token: string, content: EventContent): Job {
  return {
    id: row.id,
    token,
    queue: row.queue,
    kind: row.kind,
    handler: row.handler,
    tenant: row.tenant,
    key: row.key,
    attempt: row.attempt,
    maxAttempts: row.max_attempts,
    recoveries: row.recoveries,
    waitedMs: row.waited_ms,
    payload: row.payload,
    siblings: row.siblings,
    event: row.event === null ? undefined : toEvent(row, row.event, content),
  };
}

function toEvent(row: ClaimedRow, id: string, { body, headers, unreadable }: EventContent): JobEvent {
  return {
    id,
    source: row.source,
    account: row.account,
    livemode: row.livemode,
    eventId: row.event_id,
    type: row.type,
    receivedAt: new Date(row.received_ms),
    traceparent: row.traceparent,
    body,
    headers,
    ...(unreadable && { unreadable }),
  };
}

/** Says that a job which was claimed alone starts now. False where the lease was lost meanwhile. */
export async function startAlone(client: Queryable, { id, token }: Lease, leaseMs: number): Promise<boolean> {
  const { rowCount } = await client.query(
    `update ukemi.jobs
     set started_at = ukemi.now(), lease_until = ukemi.now() + $3 * interval '1 ms'
     where id = $1 and lease_token = $2 and state = 'running'`,
    [id, token, leaseMs],
  );
  return rowCount === 1;
}
