// Changes that may be asked for twice: the key is written in the transaction of the change, with the answer that was given.
import type { Queryable } from "./postgres.ts";

/** A request that carries a key. */
export interface KeyedRequest {
  /** Whose key it is: another's key of the same name is another key. */
  readonly caller: string;
  readonly key: string;
  /** Of everything that the request asks for. */
  readonly sha256: Buffer;
}

/** The answer that the key stands for. */
export interface KeptAnswer {
  readonly sha256: Buffer;
  readonly status: number;
  readonly answer: string;
}

/** A change that is not done by then is given up. */
const STATEMENT_MS = 15_000;

/** How long a key is remembered. */
const REMEMBERED = "interval '24 hours'";

/**
 * The answer that was given to a request with this key; undefined where the key is new: it is then held until the transaction
 * ends. Where another request holds it, this fails as a lock does: whoever tries again holds no connection meanwhile.
 */
export async function holdKey(client: Queryable, request: KeyedRequest): Promise<KeptAnswer | undefined> {
  await client.query(
    `set local statement_timeout = ${STATEMENT_MS}; set local lock_timeout = 1`, // what a change waits for is its own matter
  );
  await client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [
    `ukemi.idempotency ${request.caller} ${request.key}`,
  ]);
  await client.query("set local lock_timeout = default");
  const { rows } = await client.query<KeptAnswer>(
    `select request_sha256 as sha256, status, answer
     from ukemi.idempotency_keys
     where caller = $1 and key = $2 and created_at > ukemi.now() - ${REMEMBERED}`,
    [request.caller, request.key],
  );
  return rows[0];
}

/** Remembers the answer; a key that was forgotten is written anew. */
export async function keepAnswer(
  client: Queryable,
  request: KeyedRequest,
  { status, answer }: { readonly status: number; readonly answer: string },
): Promise<void> {
  await client.query(
    `insert into ukemi.idempotency_keys (caller, key, request_sha256, status, answer)
     values ($1, $2, $3, $4, $5)
     on conflict (caller, key) do update
     set request_sha256 = excluded.request_sha256, status = excluded.status, answer = excluded.answer,
       created_at = excluded.created_at`,
    [request.caller, request.key, request.sha256, status, answer],
  );
}

/** Forgets keys that are old, a bounded number of them. */
export async function forgetKeys(client: Queryable): Promise<number> {
  const { rowCount } = await client.query(
    `delete from ukemi.idempotency_keys
     where (caller, key) in (
       select caller, key
       from ukemi.idempotency_keys
       where created_at <= ukemi.now() - ${REMEMBERED}
       order by created_at
       limit 1000
     )`,
  );
  return rowCount ?? 0;
}
