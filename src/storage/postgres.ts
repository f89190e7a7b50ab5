// Connections to PostgreSQL, and what must be true of the server behind them.
import type { Writable } from "node:stream";
import pg from "pg";
import { inTime } from "../clock.ts";
import { UkemiError } from "../errors.ts";

/** Anything that can run one statement: a pool, a client, or a transaction's client. */
export interface Queryable {
  query<R extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<pg.QueryResult<R>>;
  query<R extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<R>>;
}

/** A pool for everything that is not on the hot path. */
export type Pool = pg.Pool;

/** A connection of its own, for a lane of the inbox. */
export interface Connection extends Queryable {
  /** True where the connection goes through a transaction pooler: no session settings, no named statements. */
  readonly pooled: boolean;
  /** Sends a query of our own kind, which knows itself whom to tell. */
  submit(query: pg.Submittable): void;
  /** Calls back once when the connection is lost; at once where it is lost already. */
  onLost(callback: () => void): void;
  /** Calls back with each notification that this session listens for. */
  onNotification(callback: (payload: string, channel: string) => void): void;
  /** Cuts the connection at once, also where the peer no longer answers. */
  destroy(): void;
  end(): Promise<void>;
}

/** Limits of one connection, in milliseconds. */
export interface ConnectionLimits {
  readonly connectTimeoutMs: number;
  readonly statementTimeoutMs: number;
  /** As PostgreSQL shows it in pg_stat_activity. @default "ukemi inbox" */
  readonly name?: string;
}

export interface PoolOptions {
  /** @default 8 */
  readonly max?: number;
  /** As PostgreSQL shows it in pg_stat_activity. @default "ukemi" */
  readonly name?: string;
  /** After this time a statement is given up; 0 never. @default 30000 */
  readonly queryTimeoutMs?: number;
  /** Statements are sent without waiting for the answers to those before them. @default false */
  readonly pipeline?: boolean;
}

/** Opens a pool. It connects when first used, and a broken idle connection never ends the process. */
export function openPool(url: string, options: PoolOptions = {}): Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: options.max ?? 8,
    application_name: options.name ?? "ukemi",
    connectionTimeoutMillis: 5_000,
    query_timeout: options.queryTimeoutMs ?? 30_000,
    pipeline: options.pipeline ?? false,
    keepAlive: true,
    allowExitOnIdle: true,
  });
  // An idle connection lost to a restart is replaced on the next use, and one lost between two statements fails the next:
  // without a listener either would end the process.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

/** Closes the pool. What still runs after the grace is cut: a peer that went silent must not hold up a stop. */
export async function closePool(pool: Pool, graceMs = 1000): Promise<void> {
  const timer = setTimeout(() => {
    for (const client of clientsOf(pool)) cut(client);
  }, graceMs);
  // a client that nobody gives back would keep the pool from ending for ever
  await inTime(pool.end(), graceMs + 1000, () => {});
  clearTimeout(timer);
}

/** Opens one connection with its limits set. */
export async function connect(url: string, limits: ConnectionLimits): Promise<Connection> {
  const client = new pg.Client({
    connectionString: url,
    application_name: limits.name ?? "ukemi inbox",
    connectionTimeoutMillis: limits.connectTimeoutMs,
    keepAlive: true,
  });
  let isLost = false;
  let lost: (() => void) | undefined;
  const lose = () => {
    isLost = true;
    lost?.();
  };
  client.on("error", lose);
  client.on("end", lose);
  const destroy = () => cut(client);
  // `pg` watches only the sign-in: a peer that goes silent right after it would hold us for ever
  const watchdog = setTimeout(destroy, limits.connectTimeoutMs);
  let pooled: boolean;
  try {
    await client.connect();
    pooled = await throughPooler(client);
    // behind a transaction pooler a SET would leak into other people's transactions
    // a statement of twenty arrays takes as long to plan as to run: it is planned once
    if (!pooled) {
      await client.query(
        `set statement_timeout = ${limits.statementTimeoutMs}; set plan_cache_mode = force_generic_plan`,
      );
    }
  } catch (error) {
    destroy();
    throw error;
  } finally {
    clearTimeout(watchdog);
  }
  const query: Queryable["query"] = client.query.bind(client);
  return {
    pooled,
    query,
    submit: (own) => void client.query(own),
    onLost(callback) {
      lost = callback;
      if (isLost) callback();
    },
    onNotification: (callback) =>
      client.on("notification", ({ payload, channel }) => callback(payload ?? "", channel)),
    destroy,
    async end() {
      const timer = setTimeout(destroy, 1000); // a silent peer never answers the goodbye
      await client.end();
      clearTimeout(timer);
    },
  };
}

/** What is sent before this turn of the event loop ends goes out in one write, which is most of what a statement costs us. */
export function sendTogether(client: pg.ClientBase): void {
  const { stream } = (client as unknown as { connection: { stream: Writable } }).connection;
  stream.cork();
  process.nextTick(() => stream.uncork());
}

/** Waits for an answer; cuts the connection where none comes in time. */
export async function answeredIn<T>(client: pg.ClientBase, ms: number, answer: Promise<T>): Promise<T> {
  const watchdog = setTimeout(() => cut(client), ms);
  try {
    return await answer;
  } finally {
    clearTimeout(watchdog);
  }
}

/** A value as `pg` sends it; throws where it cannot be sent. */
export function asSent(value: unknown): unknown {
  const { utils } = pg as unknown as { utils: { prepareValue(value: unknown): unknown } };
  return utils.prepareValue(value);
}

/** `pg` has no public way to cut a connection whose peer is silent: `end()` would wait for it. */
export function cut(client: pg.ClientBase): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}

/** Nor to see the clients of a pool, busy ones included. */
function clientsOf(pool: Pool): readonly pg.ClientBase[] {
  return (pool as unknown as { _clients: pg.ClientBase[] })._clients;
}

/** A pooler answers the handshake with a made-up process id; the statement runs in another backend. */
async function throughPooler(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid !== (client as unknown as { processID: number | null }).processID;
}

/** Runs reads that the server itself gives up after the time: a client that stops waiting does not stop the work. */
export function readWithin<T>(pool: Pool, ms: number, work: (client: Queryable) => Promise<T>): Promise<T> {
  return transaction(pool, async (client) => {
    await client.query(`set local statement_timeout = ${ms}`);
    return work(client);
  });
}

const FROZEN_MS = 10_000;

/** Runs the work in one transaction; rolls back when it throws. The server ends it where we are silent for `frozenMs`. */
export async function transaction<T>(
  pool: Pool,
  work: (client: Queryable) => Promise<T>,
  frozenMs = FROZEN_MS,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    // a process that freezes between two statements must not hold what others wait for; and where a table has no statistics
    // yet, the server would compile a small statement for half a second
    await client.query(
      `begin; set local idle_in_transaction_session_timeout = ${frozenMs}; set local jit = off`,
    );
    const result = await work(client);
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback").catch((fault: Error) => (broken = fault));
    throw error;
  } finally {
    client.release(broken);
  }
}

/** What the server says about itself. */
export interface ServerFacts {
  readonly version: string;
  readonly major: number;
  readonly encoding: string;
  readonly fsync: boolean;
  readonly fullPageWrites: boolean;
  readonly synchronousCommit: string;
  readonly readOnly: boolean;
  readonly pooled: boolean;
  readonly now: Date;
}

/** Asks the server for the facts that durability rests on. */
export async function readServerFacts(pool: Pool): Promise<ServerFacts> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<Record<string, string>>(`
      select
        current_setting('server_version') as version,
        current_setting('server_version_num') as version_num,
        current_setting('server_encoding') as encoding,
        current_setting('fsync') as fsync,
        current_setting('full_page_writes') as full_page_writes,
        current_setting('synchronous_commit') as synchronous_commit,
        pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on' as read_only,
        extract(epoch from clock_timestamp()) * 1000 as now_ms`);
    const row = rows[0]!;
    return {
      version: row.version!,
      major: Math.trunc(Number(row.version_num) / 10_000),
      encoding: row.encoding!,
      fsync: row.fsync === "on",
      fullPageWrites: row.full_page_writes === "on",
      synchronousCommit: row.synchronous_commit!,
      readOnly: Boolean(row.read_only),
      pooled: await throughPooler(client),
      now: new Date(Number(row.now_ms)),
    };
  } finally {
    client.release();
  }
}

/** Refuses a server on which a 2xx could not mean "committed". */
export function requireDurable(facts: ServerFacts, allowUnsafe: boolean): void {
  if (facts.major < 15) {
    throw new UkemiError(
      "postgres_unsupported",
      `PostgreSQL ${facts.version} is too old: 15 or newer is needed.`,
    );
  }
  if (facts.encoding !== "UTF8") {
    throw new UkemiError(
      "postgres_unsupported",
      `The database's encoding is ${facts.encoding}: it must be UTF8 (create database … encoding 'UTF8').`,
    );
  }
  if (!facts.fsync && !allowUnsafe) {
    throw new UkemiError(
      "unsafe_durability",
      "This PostgreSQL runs with fsync = off: a crash would lose events that were acknowledged.",
    );
  }
}
