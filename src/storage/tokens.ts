// Tokens of the admin API: made, looked up by their hash, rotated, revoked. The secret itself is never stored.
import { timeOf } from "./conditions.ts";
import type { Queryable } from "./postgres.ts";

/** What a token lets its holder do; each includes the ones before it. */
export type Scope = (typeof SCOPES)[number];

export const SCOPES = ["read", "operate", "admin"] as const;

/** A token as the API and the command line show it. */
export interface ListedToken {
  readonly id: string;
  readonly name: string;
  /** Its first letters. */
  readonly hint: string;
  readonly scope: Scope;
  /** Null: every tenant, and what belongs to none. */
  readonly tenants: readonly string[] | null;
  readonly created_at: Date;
  readonly created_by: string;
  /** For how long it was made; null: until it is revoked. */
  readonly lifetime_seconds: number | null;
  readonly expires_at: Date | null;
  /** To the minute. */
  readonly last_used_at: Date | null;
  readonly revoked_at: Date | null;
  readonly replaces: string | null;
  /** True where it still opens the door. */
  readonly active: boolean;
}

const FACTS = `
  t.id, t.name, t.hint, t.scope, t.tenants, t.created_by, t.replaces,
  extract(epoch from t.lifetime)::float8 as lifetime_seconds, to_json(t.created_at) as created_at, to_json(t.expires_at) as expires_at,
  to_json(t.last_used_at) as last_used_at, to_json(t.revoked_at) as revoked_at,
  t.revoked_at is null and (t.expires_at is null or t.expires_at > ukemi.now()) as active`;

type Row = { readonly [Name in keyof ListedToken]: ListedToken[Name] };

function toListed(row: Row): ListedToken {
  return {
    ...row,
    created_at: new Date(row.created_at),
    expires_at: timeOf(row.expires_at),
    last_used_at: timeOf(row.last_used_at),
    revoked_at: timeOf(row.revoked_at),
  };
}

/** Lists the tokens, newest first. */
export async function listTokens(client: Queryable): Promise<readonly ListedToken[]> {
  const { rows } = await client.query<Row>(
    `select ${FACTS} from ukemi.tokens t order by t.id desc limit 1000`,
  );
  return rows.map(toListed);
}

/** The token with this hash if it is active; notes that it was used, at most once a minute. */
export async function useToken(client: Queryable, hash: Buffer): Promise<ListedToken | undefined> {
  const { rows } = await client.query<Row & { readonly stale: boolean }>(
    `select ${FACTS}, t.last_used_at is null or t.last_used_at < ukemi.now() - interval '1 minute' as stale
     from ukemi.tokens t
     where t.hash = $1`,
    [hash],
  );
  const row = rows[0];
  if (!row?.active) return undefined;
  if (row.stale)
    await client.query("update ukemi.tokens set last_used_at = ukemi.now() where id = $1", [row.id]);
  const { stale: _, ...token } = row;
  return toListed(token);
}

/** True where a token was ever made: one that has expired must not open the door again to those without. */
export async function hasTokens(client: Queryable): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    "select exists (select from ukemi.tokens) as found",
  );
  return rows[0]!.found;
}

/** Until when somebody has an active token of scope admin for everything: null is for ever, undefined is nobody. */
export async function adminUntil(client: Queryable): Promise<Date | null | undefined> {
  const { rows } = await client.query<{ until: string | null; found: boolean }>(
    `select count(*) > 0 as found,
       case when not bool_or(expires_at is null) then to_json(max(expires_at)) end as until
     from ukemi.tokens
     where revoked_at is null and (expires_at is null or expires_at > ukemi.now())
       and scope = 'admin' and tenants is null`,
  );
  const { found, until } = rows[0]!;
  return found ? timeOf(until) : undefined;
}

/** A token to be made, with who makes it and why. */
export interface NewToken {
  readonly id: string;
  readonly name: string;
  readonly hash: Buffer;
  readonly hint: string;
  readonly scope: Scope;
  readonly tenants: readonly string[] | null;
  /** Seconds from now; null: until it is revoked. */
  readonly expiresInSeconds: number | null;
  readonly replaces: string | null;
  readonly actor: string;
  readonly reason: string;
}

/** Makes a token, with its audit. Must run in a transaction. */
export async function insertToken(client: Queryable, token: NewToken): Promise<ListedToken> {
  const { rows } = await client.query<Row>(
    `with made as (
       insert into ukemi.tokens (id, name, hash, hint, scope, tenants, created_by, lifetime, expires_at, replaces)
       values ($1, $2, $3, $4, $5, $6, $7, $8::float8 * interval '1 second',
         ukemi.now() + $8::float8 * interval '1 second', $9)
       returning *
     ),
     audits as (
       insert into ukemi.audit_log (actor, role, action, target, details)
       select $7, 'operator', case when $9::uuid is null then 'token.made' else 'token.rotated' end, id::text,
         jsonb_build_object('reason', $10::text, 'name', name, 'scope', scope, 'tenants', tenants,
           'expires_at', expires_at, 'replaces', replaces)
       from made
     )
     select ${FACTS} from made t`,
    [
      token.id,
      token.name,
      token.hash,
      token.hint,
      token.scope,
      token.tenants,
      token.actor,
      token.expiresInSeconds,
      token.replaces,
      token.reason,
    ],
  );
  return toListed(rows[0]!);
}

/** Locks an active token for a change; undefined where there is none with this id. */
export async function lockToken(client: Queryable, id: string): Promise<ListedToken | undefined> {
  const { rows } = await client.query<Row>(`select ${FACTS} from ukemi.tokens t where t.id = $1 for update`, [
    id,
  ]);
  return rows[0]?.active ? toListed(rows[0]) : undefined;
}

/** Lets a token expire after so many seconds, or sooner where it would have anyway. */
export async function expireToken(client: Queryable, id: string, inSeconds: number): Promise<void> {
  await client.query(
    `update ukemi.tokens
     set expires_at = least(expires_at, ukemi.now() + $2::float8 * interval '1 second')
     where id = $1`,
    [id, inSeconds],
  );
}

/** Revokes a token at once, with its audit. False where it was not active. Must run in a transaction. */
export async function revokeToken(
  client: Queryable,
  { id, actor, reason }: { readonly id: string; readonly actor: string; readonly reason: string },
): Promise<boolean> {
  const { rows } = await client.query<{ id: string }>(
    `with revoked as (
       update ukemi.tokens
       set revoked_at = ukemi.now()
       where id = $1 and revoked_at is null and (expires_at is null or expires_at > ukemi.now())
       returning id, name
     ),
     audits as (
       insert into ukemi.audit_log (actor, role, action, target, details)
       select $2, 'operator', 'token.revoked', id::text, jsonb_build_object('reason', $3::text, 'name', name)
       from revoked
     )
     select id from revoked`,
    [id, actor, reason],
  );
  return rows.length === 1;
}
