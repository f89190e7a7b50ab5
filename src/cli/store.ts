// The database that a command opens itself: the given one, or the embedded one of a folder, which a server may be using.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { ApiError } from "../client/client.ts";
import { UkemiError } from "../errors.ts";
import type { OptionName, Settings } from "../options.ts";
import { startEmbedded } from "../storage/embedded/embedded.ts";
import { readMigrations, readSchema, requireSchema } from "../storage/migrate.ts";
import { explain } from "../storage/open.ts";
import { closePool, openPool, type Pool } from "../storage/postgres.ts";
import { readConfigured, withConfig } from "./config.ts";
import { makeSecret } from "./dev-secret.ts";
import { note } from "./print.ts";
import { settingsOf, withFlags } from "./settings.ts";

const CONNECTIONS = 3;

/** Adds the flags of commands that open the database themselves. */
export function withStoreFlags(command: Command, more: readonly OptionName[] = []): Command {
  return withFlags(withConfig(command), ["database", "data", ...more]);
}

/** Runs the work on the store of the command's settings: the given database, or the embedded one, which a server may be using. */
export async function withStore<T>(
  command: Command,
  work: (pool: Pool, settings: Settings, place: string) => Promise<T>,
  { readsFile = false }: { readonly readsFile?: boolean } = {},
): Promise<T> {
  tellOfServer(command);
  const settings = await readStore(command, readsFile);
  const embedded = settings.database === undefined ? await startFound(settings) : undefined;
  const pool = openPool(embedded?.url ?? settings.database!, {
    max: CONNECTIONS,
    name: "ukemi cli",
    queryTimeoutMs: 0, // Ctrl-C ends what takes too long
  });
  try {
    requireSchema(await readSchema(pool), await readMigrations());
    return await work(pool, settings, placeOf(settings));
  } catch (error) {
    throw error instanceof ApiError ? error : explain(error);
  } finally {
    await closePool(pool);
    await embedded?.stop();
  }
}

/** Whoever has set UKEMI_URL must not believe that the server is asked. */
function tellOfServer(command: Command): void {
  const { database, data } = command.opts<{ database?: string; data?: string }>();
  if (!process.env.UKEMI_URL || database !== undefined || data !== undefined) return;
  note("ukemi: this command opens the database itself; UKEMI_URL is not used.");
}

/** Where only the database is needed and given, a fault in the file must not keep an operator from the store. */
async function readStore(command: Command, readsFile: boolean): Promise<Settings> {
  const { settings } = settingsOf(command);
  const namesFile = command.opts<{ config?: string }>().config !== undefined;
  if (settings.database !== undefined && !namesFile && !readsFile) return settings;
  return (await readConfigured(command, makeSecret())).settings;
}

/** To look at an empty folder must not fill it with a new database. */
async function startFound({ data }: Settings) {
  if (!existsSync(join(data, "postgres")) && !existsSync(join(data, "postgres.location"))) {
    throw new UkemiError(
      "invalid_option",
      `There is no store in ${data}: set DATABASE_URL or UKEMI_URL, or name the folder of the server with --data.`,
    );
  }
  return startEmbedded({ data });
}

/** What is acted on, as a person would say it; without user and password. */
function placeOf({ database, data }: Settings): string {
  return database === undefined ? `the store in ${data}` : `the ${describeUrl(database)}`;
}

/** Where a connection string leads, without who goes there. */
export function describeUrl(url: string): string {
  // a name and a password before no host, as on a socket, is what pg takes and no URL
  const place = url.replace(/^(\w+:\/\/)[^/?#]*@/, "$1");
  const { hostname, port, pathname, searchParams } = new URL(place);
  const host = searchParams.get("host") ?? hostname;
  return `database ${pathname.slice(1) || "(default)"} at ${host}:${searchParams.get("port") ?? (port || 5432)}`;
}
