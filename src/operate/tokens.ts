// Tokens in an operator's hands: who may use the API, for what, for which tenants, and until when.
import { createHash, randomBytes } from "node:crypto";
import { UkemiError } from "../errors.ts";
import { isUuid, uuidv7 } from "../storage/ids.ts";
import type { Pool } from "../storage/postgres.ts";
import {
  expireToken,
  hasTokens,
  insertToken,
  listTokens,
  lockToken,
  revokeToken,
  SCOPES,
  useToken,
  type ListedToken,
  type Scope,
} from "../storage/tokens.ts";
import { inTransaction } from "./transaction.ts";
import type { Read } from "./read.ts";
import { readMandate, readText, wrong, type Mandate } from "./mandate.ts";

/** What a token is to be. */
export interface TokenRequest {
  /** For people: whose it is, and what for. */
  readonly name: string;
  readonly scope: Scope;
  /** Only these tenants' events, jobs and audit. @default all */
  readonly tenants?: readonly string[];
  /** @default until it is revoked */
  readonly expiresInSeconds?: number;
}

/** A token with its secret, which is shown this once. */
export type MadeToken = ListedToken & { readonly secret: string };

/** What can be done with tokens. */
export interface Tokens {
  list(): Promise<readonly ListedToken[]>;
  make(request: TokenRequest, mandate: Mandate): Promise<MadeToken>;
  /** Makes one like it; the old one stays good for so many seconds. */
  rotate(id: string, overlapSeconds: number, mandate: Mandate): Promise<MadeToken>;
  revoke(id: string, mandate: Mandate): Promise<void>;
  /** The active token with this secret; notes that it was used. */
  find(secret: string): Promise<ListedToken | undefined>;
  /** True where one was ever made. */
  any(): Promise<boolean>;
}

const PREFIX = "ukemi_";
const SECRET_BYTES = 32;
const HINT_LETTERS = 10;
const NAME_MAX = 100;
const TENANTS_MAX = 100;
const TENANT_MAX = 255;
const YEARS_MAX_SECONDS = 10 * 365 * 86_400;

export function createTokens(open: () => Promise<Pool>, read: Read): Tokens {
  return {
    list: () => read(listTokens),
    async make(request, mandate) {
      const by = readMandate(mandate);
      const wanted = readRequest(request);
      const { secret, ...kept } = makeSecret();
      const made = await inTransaction(await open(), (client) =>
        insertToken(client, { ...kept, ...wanted, ...by, replaces: null }),
      );
      return { ...made, secret };
    },
    async rotate(id, overlapSeconds, mandate) {
      const by = readMandate(mandate);
      const overlap = readSeconds("overlap_seconds", overlapSeconds, 0);
      requireId(id);
      const { secret, ...kept } = makeSecret();
      const made = await inTransaction(await open(), async (client) => {
        const old = await lockToken(client, id);
        if (!old) throw noToken();
        const { name, scope, tenants, lifetime_seconds: expiresInSeconds } = old; // the same span of life again
        await expireToken(client, id, overlap);
        return insertToken(client, { ...kept, name, scope, tenants, expiresInSeconds, replaces: id, ...by });
      });
      return { ...made, secret };
    },
    async revoke(id, mandate) {
      const by = readMandate(mandate);
      requireId(id);
      const revoked = await inTransaction(await open(), (client) => revokeToken(client, { id, ...by }));
      if (!revoked) throw noToken();
    },
    find: async (secret) =>
      secret.startsWith(PREFIX) ? read((client) => useToken(client, hashOf(secret))) : undefined,
    any: () => read(hasTokens),
  };
}

function makeSecret(): { id: string; secret: string; hash: Buffer; hint: string } {
  const secret = PREFIX + randomBytes(SECRET_BYTES).toString("base64url");
  return { id: uuidv7(Date.now()), secret, hash: hashOf(secret), hint: secret.slice(0, HINT_LETTERS) };
}

const hashOf = (secret: string) => createHash("sha256").update(secret).digest();

function readRequest({ name, scope, tenants, expiresInSeconds }: TokenRequest) {
  if (!SCOPES.includes(scope)) throw wrong("scope", `must be one of ${SCOPES.join(", ")}`);
  return {
    name: readText("name", name, NAME_MAX),
    scope,
    tenants: tenants === undefined ? null : readTenants(tenants),
    expiresInSeconds:
      expiresInSeconds === undefined ? null : readSeconds("expires_in_seconds", expiresInSeconds, 1),
  };
}

function readTenants(tenants: readonly string[]): readonly string[] {
  if (!Array.isArray(tenants) || tenants.length === 0 || tenants.length > TENANTS_MAX) {
    throw wrong("tenants", `must be a list of 1 to ${TENANTS_MAX} tenants; leave it out for all`);
  }
  return [...new Set(tenants.map((tenant) => readText("tenants", tenant, TENANT_MAX)))];
}

function readSeconds(name: string, seconds: number, least: number): number {
  if (typeof seconds !== "number" || !(seconds >= least && seconds <= YEARS_MAX_SECONDS)) {
    throw wrong(name, `must be a number of seconds from ${least} to ${YEARS_MAX_SECONDS}`);
  }
  return seconds;
}

function requireId(id: string): void {
  if (!isUuid(id)) throw noToken();
}

function noToken(): UkemiError {
  return new UkemiError("not_found", "There is no active token with this id: `ukemi token list` lists them.");
}
