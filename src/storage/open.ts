// Opens the store: the given PostgreSQL, or the embedded one; checks that it can be trusted, and its schema.
import { UkemiError } from "../errors.ts";
import type { Settings } from "../options.ts";
import { startEmbedded, type EmbeddedPostgres } from "./embedded/embedded.ts";
import { classifyFault, describeFault } from "./faults.ts";
import { migrate, readMigrations, readSchema, requireSchema } from "./migrate.ts";
import {
  closePool,
  openPool,
  readServerFacts,
  requireDurable,
  type Pool,
  type ServerFacts,
} from "./postgres.ts";
import { makeBodyMonths } from "./upkeep.ts";

/** An open store. */
export interface Store {
  readonly pool: Pool;
  /** Where lanes connect to. */
  readonly url: string;
  readonly facts: ServerFacts;
  /** The embedded server, where that is what we use. */
  readonly embedded: EmbeddedPostgres | undefined;
  close(): Promise<void>;
}

export type StoreSettings = Pick<
  Settings,
  "database" | "directUrl" | "data" | "migrate" | "allowUnsafeDurability"
>;

/** How many months of bodies are made ahead. */
export const MONTHS_AHEAD = 3;

type Log = (message: string, fields?: Record<string, unknown>) => void;

/** Opens the store, ready for use, or throws an error that says what to do. */
export async function openStore(settings: StoreSettings, log: Log = () => {}): Promise<Store> {
  const embedded =
    settings.database === undefined ? await startEmbedded({ data: settings.data, log }) : undefined;
  const url = embedded?.url ?? settings.database!;
  const pool = openPool(url);
  const close = async () => {
    await closePool(pool);
    await embedded?.stop();
  };
  try {
    const facts = await readServerFacts(pool).catch(unreachable);
    requireDurable(facts, settings.allowUnsafeDurability);
    if (embedded || settings.migrate) await migrateStore(settings.directUrl ?? url, log);
    requireSchema(await readSchema(pool), await readMigrations());
    await makeBodyMonths(pool, MONTHS_AHEAD);
    return { pool, url, facts, embedded, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Brings the schema up to date, over a connection that goes round a pooler where one is given. */
export async function migrateStore(url: string, log: Log = () => {}): Promise<{ from: number; to: number }> {
  const pool = openPool(url, { max: 1, name: "ukemi migrate", queryTimeoutMs: 0 });
  try {
    const from = (await readSchema(pool).catch(unreachable)).version;
    const { version: to } = await migrate(pool, await readMigrations(), (migration) =>
      log("migration applied", { version: migration.version, name: migration.name }),
    );
    return { from, to };
  } finally {
    await pool.end();
  }
}

function unreachable(error: unknown): never {
  // a statement that the server refused is another matter than a server that is not there
  if (classifyFault(error) === "infrastructure") {
    throw new UkemiError("database_unreachable", `PostgreSQL cannot be reached: ${describeFault(error)}.`, {
      cause: error,
    });
  }
  throw error;
}
