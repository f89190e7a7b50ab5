// The data keys in their table: sealed by a master key, one for each month.
import type { Queryable } from "./postgres.ts";

/** A data key as it lies in the table. */
export interface WrappedKey {
  readonly id: string;
  readonly wrapped: Buffer;
  /** The name of the master key that opens it. */
  readonly wrapped_by: string;
  readonly created_at: Date;
}

const SELECT = "select id, wrapped, wrapped_by, to_json(created_at) as created_at from ukemi.data_keys";

type Row = Omit<WrappedKey, "created_at"> & { readonly created_at: string };

/** Every data key, the oldest first. */
export async function readDataKeys(client: Queryable): Promise<WrappedKey[]> {
  const { rows } = await client.query<Row>(`${SELECT} order by id`);
  return rows.map(toKey);
}

/** The same, and nobody else changes them until the transaction ends. */
export async function lockDataKeys(client: Queryable): Promise<WrappedKey[]> {
  const { rows } = await client.query<Row>(`${SELECT} order by id for update`);
  return rows.map(toKey);
}

/** The present month on the database's clock: the id of its data key. */
export async function readMonth(client: Queryable): Promise<string> {
  const { rows } = await client.query<{ month: string }>(
    "select to_char(ukemi.now() at time zone 'UTC', 'YYYY-MM') as month",
  );
  return rows[0]!.month;
}

/** Keeps a new data key, unless somebody was faster: the one that is there counts for all. */
export async function keepDataKey(
  client: Queryable,
  { id, wrapped, wrapped_by }: Omit<WrappedKey, "created_at">,
): Promise<void> {
  await client.query(
    "insert into ukemi.data_keys (id, wrapped, wrapped_by) values ($1, $2, $3) on conflict (id) do nothing",
    [id, wrapped, wrapped_by],
  );
}

/** The id of the data key of which digests are made; undefined where nobody has chosen one. */
export async function readDigestKey(client: Queryable): Promise<string | undefined> {
  const { rows } = await client.query<{ data_key: string }>("select data_key from ukemi.digest_key");
  return rows[0]?.data_key;
}

/** Chooses it, unless somebody was faster: the one that was chosen first counts for all, for ever. */
export async function chooseDigestKey(client: Queryable, id: string): Promise<void> {
  await client.query("insert into ukemi.digest_key (data_key) values ($1) on conflict (one) do nothing", [
    id,
  ]);
}

/** Who wraps which data keys anew, and why. */
export interface Rewrap {
  readonly keys: readonly Pick<WrappedKey, "id" | "wrapped">[];
  /** The names of the master keys that opened them so far. */
  readonly from: readonly string[];
  /** The name of the master key that opens them from now on. */
  readonly to: string;
  readonly actor: string;
  readonly reason: string;
}

/** Replaces the wrapping of data keys, with its audit. Must run in a transaction. */
export async function replaceWrapping(client: Queryable, rewrap: Rewrap): Promise<void> {
  const { keys, from, to, actor, reason } = rewrap;
  await client.query(
    `with changed as (
       update ukemi.data_keys k
       set wrapped = n.wrapped, wrapped_by = $3
       from unnest($1::text[], $2::bytea[]) as n (id, wrapped)
       where k.id = n.id
     )
     insert into ukemi.audit_log (actor, role, action, target, details)
     values ($4, 'operator', 'bodies.rewrapped', $3::text,
       jsonb_build_object('reason', $5::text, 'data_keys', to_jsonb($1::text[]), 'from', to_jsonb($6::text[])))`,
    [keys.map((key) => key.id), keys.map((key) => key.wrapped), to, actor, reason, from],
  );
}

function toKey(row: Row): WrappedKey {
  return { ...row, created_at: new Date(row.created_at) };
}
