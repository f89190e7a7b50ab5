// Brings the schema up to date, and decides whether this code may run on the schema that is there.
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { UkemiError } from "../errors.ts";
import { sleep } from "../clock.ts";
import { sqlState } from "./faults.ts";
import { type Pool, type Queryable, transaction } from "./postgres.ts";

/** A numbered SQL file. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
  /** The oldest code (by its newest migration) that still runs on the schema after this migration. */
  readonly compatibleWith: number;
}

/** What the database says about its schema. */
export interface SchemaState {
  /** The newest migration applied; 0 where there is none. */
  readonly version: number;
  /** The oldest code that may still run on it. */
  readonly compatibleWith: number;
  readonly applied: readonly { version: number; name: string; checksum: string }[];
}

const FOLDER = new URL("../../migrations/", import.meta.url);

/** Reads the migrations that this version of Ukemi knows, in order. */
export async function readMigrations(folder: URL = FOLDER): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}_.+\.sql$/.test(name)).toSorted();
  return Promise.all(
    names.map(async (file) => {
      const sql = await readFile(new URL(file, folder), "utf8");
      const version = Number(file.slice(0, 4));
      const compatible = /^-- compatible-with: (\d+)$/m.exec(sql)?.[1];
      if (compatible === undefined) throw new Error(`${file} lacks its "-- compatible-with: N" line`);
      return {
        version,
        name: file.slice(5, -4),
        sql,
        checksum: createHash("sha256").update(sql).digest("hex"),
        compatibleWith: Number(compatible),
      };
    }),
  );
}

/** Reads what has been applied. */
export async function readSchema(client: Queryable): Promise<SchemaState> {
  const exists = await client.query<{ found: boolean }>(
    "select to_regclass('ukemi.migrations') is not null as found",
  );
  if (!exists.rows[0]?.found) return { version: 0, compatibleWith: 0, applied: [] };
  const { rows } = await client.query<{
    version: number;
    name: string;
    checksum: string;
    compatible_with: number;
  }>("select version, name, checksum, compatible_with from ukemi.migrations order by version");
  return {
    version: rows.at(-1)?.version ?? 0,
    compatibleWith: Math.max(0, ...rows.map((row) => row.compatible_with)),
    applied: rows,
  };
}

/** Throws unless this code may run on that schema: not older than it needs, not newer than it can stand. */
export function requireSchema(schema: SchemaState, known: readonly Migration[]): void {
  const newest = known.at(-1)?.version ?? 0;
  if (schema.version < newest) {
    const found = schema.version === 0 ? "no Ukemi schema" : `schema version ${schema.version}`;
    throw new UkemiError(
      "schema_missing",
      `The database has ${found}; this version of Ukemi needs ${newest}.`,
    );
  }
  if (schema.compatibleWith > newest) {
    throw new UkemiError(
      "schema_too_new",
      `The database is at schema version ${schema.version}, which needs code that knows version ` +
        `${schema.compatibleWith}; this one knows ${newest}.`,
    );
  }
}

/** Applies what is missing, each migration in its own transaction. Safe to run from many processes at once. */
export async function migrate(
  pool: Pool,
  known: readonly Migration[],
  onApplied: (migration: Migration) => void = () => {},
): Promise<SchemaState> {
  await retryLocked(() => transaction(pool, prepare));
  for (const migration of known) {
    const applied = await retryLocked(() => transaction(pool, (client) => apply(client, migration)));
    if (applied) onApplied(migration);
  }
  return readSchema(pool);
}

/** Held to the end of the transaction: works behind a transaction pooler, and no crash leaves it behind. */
async function lock(client: Queryable): Promise<void> {
  await client.query("set local lock_timeout = '5s'");
  await client.query("select pg_advisory_xact_lock(hashtextextended('ukemi.migrate', 0))");
}

async function prepare(client: Queryable): Promise<void> {
  await lock(client);
  const { rows } = await client.query<{ found: boolean }>(
    "select to_regclass('ukemi.migrations') is not null as found",
  );
  if (rows[0]?.found) return;
  await client.query("create schema if not exists ukemi");
  await client.query(`
    create table ukemi.migrations (
      version integer primary key,
      name text not null,
      checksum text not null,
      compatible_with integer not null,
      applied_at timestamptz not null default clock_timestamp()
    )`);
}

async function apply(client: Queryable, migration: Migration): Promise<boolean> {
  await lock(client);
  const { rows } = await client.query<{ checksum: string }>(
    "select checksum from ukemi.migrations where version = $1",
    [migration.version],
  );
  if (rows[0]) {
    if (rows[0].checksum === migration.checksum) return false;
    throw new UkemiError(
      "migration_changed",
      `Migration ${migration.version} (${migration.name}) differs from the one that was applied.`,
    );
  }
  await client.query(migration.sql);
  await client.query(
    "insert into ukemi.migrations (version, name, checksum, compatible_with) values ($1, $2, $3, $4)",
    [migration.version, migration.name, migration.checksum, migration.compatibleWith],
  );
  return true;
}

/** Another process may hold the lock, or a long query a table: wait for it a few times rather than block everyone. */
async function retryLocked<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (sqlState(error) !== "55P03" || attempt === 12) throw error;
      await sleep(250 * attempt);
    }
  }
}
