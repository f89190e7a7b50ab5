// A worker's presence: a session of its own that does nothing but hold a lock and listen for news of work.
import { inTime } from "../clock.ts";
import { connect, type Connection } from "./postgres.ts";
import type { Lease } from "./claim.ts";
import { uuidv7Floor } from "./ids.ts";
import { extendLeases } from "./leases.ts";
import { registerWorker, type NewWorker } from "./workers.ts";
import { WORKER_LOCKS } from "./live-workers.ts";

/** The channel on which processes tell each other of new work. The payload is a queue's name, `queue/key`, or `queue/`. */
export const CHANNEL = "ukemi_work";

/** The channel on which they are told that a queue was paused. The payload is its name. */
const PAUSES = "ukemi_pauses";

/** There is work in a queue; with a key, a job waits there for its key; with an empty one, it is for later. */
export interface News {
  readonly queue: string;
  readonly key?: string;
}

function readNews(payload: string): News {
  const at = payload.indexOf("/"); // a queue's name has none
  return at === -1 ? { queue: payload } : { queue: payload.slice(0, at), key: payload.slice(at + 1) };
}

/** What was claimed within this time may be under way still. */
const RECENT_MS = 2000;

/** A registered worker. */
export interface Presence {
  /**
   * Says that the worker lives, and extends its leases: over this session, so that no other work can hold it up.
   * Returns the ids that are still ours. Jobs that are ours under none of the tokens are given back: they were claimed by
   * a statement whose answer was lost. A session that does not answer in time is cut.
   */
  extend(
    leases: readonly Lease[],
    tokens: readonly string[],
    timeoutMs: number,
  ): Promise<ReadonlySet<string>>;
  /** Calls back once when the session is lost: the lock is free then, and others will take our jobs. */
  onLost(callback: () => void): void;
  close(): Promise<void>;
}

export interface PresenceOptions {
  readonly url: string;
  readonly worker: Omit<NewWorker, "hasSession">;
  readonly connectTimeoutMs: number;
  /** News that there is work in a queue. */
  readonly onNews: (news: News) => void;
  /** An operator has paused the queue. */
  readonly onPause: (queue: string) => void;
}

/** Registers the worker and takes its lock. Behind a transaction pooler there is no session: leases alone must tell. */
export async function register(options: PresenceOptions): Promise<Presence> {
  const session = await connect(options.url, {
    connectTimeoutMs: options.connectTimeoutMs,
    statementTimeoutMs: options.connectTimeoutMs,
    name: "ukemi session",
  });
  try {
    const number = await registerWorker(session, { ...options.worker, hasSession: !session.pooled });
    if (!session.pooled) await takeSession(session, number);
  } catch (error) {
    session.destroy();
    throw error;
  }
  session.onNotification((payload, channel) =>
    channel === PAUSES ? options.onPause(payload) : options.onNews(readNews(payload)),
  );
  return {
    onLost: session.onLost,
    extend(leases, tokens, timeoutMs) {
      const { id, leaseMs } = options.worker;
      const asked = { leases, tokens, leaseMs, before: uuidv7Floor(Date.now() - RECENT_MS) };
      return inTime(extendLeases(session, id, asked), timeoutMs, () => {
        session.destroy();
        throw new Error("the session did not answer");
      });
    },
    close: session.end,
  };
}

async function takeSession(session: Connection, number: number): Promise<void> {
  await session.query("select pg_advisory_lock($1::int, $2::int)", [WORKER_LOCKS, number]);
  // a host that vanishes says no goodbye: let the server find out and free the lock
  await session.query("set tcp_keepalives_idle = 5");
  await session.query("set tcp_keepalives_interval = 2");
  await session.query("set tcp_keepalives_count = 3");
  await session.query(`listen ${CHANNEL}`);
  await session.query(`listen ${PAUSES}`);
}

/** Tells the workers of other processes that there is work in these queues. */
export async function notifyWorkers(
  client: Pick<Connection, "query">,
  queues: readonly string[],
): Promise<void> {
  await client.query("select pg_notify($1, queue) from unnest($2::text[]) as queue", [CHANNEL, queues]);
}

/** Tells all workers that the queue is paused: what they have claimed ahead of it must not begin. */
export async function notifyPause(client: Pick<Connection, "query">, queue: string): Promise<void> {
  await client.query("select pg_notify($1, $2)", [PAUSES, queue]);
}
