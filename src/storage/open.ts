// Opens the store: the given PostgreSQL, or the embedded one; checks that it can be trusted, and its schema.
import { UkemiError } from "../errors.ts";
import type { Settings } from "../options.ts";
import { startEmbedded } from "./embedded/embedded.ts";
import { classifyFault, describeFault, sqlState } from "./faults.ts";
import { createKeyring, type Keyring } from "./keyring.ts";
import { migrate, readMigrations, readSchema, requireSchema } from "./migrate.ts";
import type { Tell } from "./news.ts";
import { closePool, openPool, readServerFacts, requireDurable, type Pool } from "./postgres.ts";
import { makeBodyMonths } from "./upkeep.ts";

/** An open store. */
export interface Store {
  /** For reads that people ask for. */
  readonly pool: Pool;
  /** For our own duties, so that no number of slow reads can hold them up. */
  readonly duties: Pool;
  /** For the rounds: long ones among them must not hold up the duties. */
  readonly rounds: Pool;
  /** Where lanes connect to. */
  readonly url: string;
  /** Where sessions connect to that must not go through a transaction pooler. */
  readonly sessionUrl: string;
  /** True where the URL leads through a transaction pooler. */
  readonly pooled: boolean;
  /** True where a whole transaction may go out in one trip: no pooler, and a server that ends one which stands still. */
  readonly oneTrip: boolean;
  /** What seals and opens bodies. */
  readonly keyring: Keyring;
  close(): Promise<void>;
}

export type StoreSettings = Pick<
  Settings,
  "database" | "directUrl" | "data" | "migrate" | "allowUnsafeDurability" | "bodyKeys"
>;

/** The version of PostgreSQL that brought `transaction_timeout`. */
const TRANSACTION_TIMEOUT_SINCE = 17;

/** How many months of bodies are made ahead. */
export const MONTHS_AHEAD = 3;

/** Opens the store, ready for use, or throws an error that says what to do. */
export async function openStore(settings: StoreSettings, tell: Tell = () => {}): Promise<Store> {
  const embedded =
    settings.database === undefined ? await startEmbedded({ data: settings.data, tell }) : undefined;
  const url = embedded?.url ?? settings.database!;
  const pool = openPool(url);
  const duties = openPool(url, { max: 2, name: "ukemi duties" });
  const rounds = openPool(url, { max: 4, name: "ukemi rounds" });
  const close = async () => {
    await Promise.all([closePool(pool), closePool(duties), closePool(rounds)]);
    await embedded?.stop();
  };
  try {
    const facts = await readServerFacts(pool);
    requireDurable(facts, settings.allowUnsafeDurability);
    if (embedded || settings.migrate) await migrateStore(settings.directUrl ?? url, tell);
    requireSchema(await readSchema(pool), await readMigrations());
    // a user who may not make tables still receives: the default partition takes what has no month
    await makeBodyMonths(duties, MONTHS_AHEAD).catch((error: unknown) =>
      tell("warn", "the months of bodies could not be made ahead", { error: describeFault(error) }),
    );
    const keyring = createKeyring(settings.bodyKeys, tell);
    await keyring.load(duties);
    const sessionUrl = settings.directUrl ?? url;
    const { pooled } = facts;
    const oneTrip = !pooled && facts.major >= TRANSACTION_TIMEOUT_SINCE;
    return { pool, duties, rounds, url, sessionUrl, pooled, oneTrip, keyring, close };
  } catch (error) {
    await close();
    throw explain(error);
  }
}

/** Brings the schema up to date, over a connection that goes round a pooler where one is given. */
export async function migrateStore(
  url: string,
  tell: Tell = () => {},
): Promise<{ from: number; to: number }> {
  const pool = openPool(url, { max: 1, name: "ukemi migrate", queryTimeoutMs: 0 });
  try {
    const from = (await readSchema(pool)).version;
    const { version: to } = await migrate(pool, await readMigrations(), (migration) =>
      tell("info", "migration applied", { version: migration.version, name: migration.name }),
    );
    return { from, to };
  } catch (error) {
    throw explain(error);
  } finally {
    await pool.end();
  }
}

/** Ordinary mistakes in words; what is left is a bug and keeps its stack. */
export function explain(error: unknown): unknown {
  if (error instanceof UkemiError) return error;
  const said = describeFault(error);
  if (sqlState(error) === "42501") return new UkemiError("permission_denied", said, { cause: error });
  if (sqlState(error) === "25006") return new UkemiError("database_read_only", said, { cause: error });
  if (classifyFault(error) !== "infrastructure") return error;
  return new UkemiError("database_unreachable", `PostgreSQL cannot be reached: ${said}.`, { cause: error });
}
