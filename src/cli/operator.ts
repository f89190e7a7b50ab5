// The store in the hands of whoever runs a command: the given database, or the embedded one, which a server may be using.
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { UkemiError } from "../errors.ts";
import { createOperate, type Operate } from "../operate/operate.ts";
import type { Settings } from "../options.ts";
import { startEmbedded } from "../storage/embedded/embedded.ts";
import { readMigrations, readSchema, requireSchema } from "../storage/migrate.ts";
import { explain } from "../storage/open.ts";
import { closePool, openPool } from "../storage/postgres.ts";
import { readConfigured } from "./config.ts";
import { makeSecret } from "./dev-secret.ts";
import { settingsOf } from "./settings.ts";

const READ_TIMEOUT_MS = 60_000;
const CONNECTIONS = 3;

/** Runs the work on the store of the command's settings. */
export async function withOperate<T>(command: Command, work: (operate: Operate) => Promise<T>): Promise<T> {
  const settings = await readStore(command);
  const embedded = settings.database === undefined ? await startFound(settings) : undefined;
  const pool = openPool(embedded?.url ?? settings.database!, {
    max: CONNECTIONS,
    name: "ukemi cli",
    queryTimeoutMs: 0, // Ctrl-C ends what takes too long
  });
  try {
    requireSchema(await readSchema(pool), await readMigrations());
    return await work(
      createOperate({
        open: () => Promise.resolve(pool),
        readTimeoutMs: READ_TIMEOUT_MS,
        bodyKeys: settings.bodyKeys,
      }),
    );
  } catch (error) {
    throw asUsage(explain(error));
  } finally {
    await closePool(pool);
    await embedded?.stop();
  }
}

/** With the database given, the file has nothing to add: a fault in it must not keep an operator from the store. */
async function readStore(command: Command): Promise<Settings> {
  const { settings } = settingsOf(command);
  if (settings.database !== undefined && command.opts<{ config?: string }>().config === undefined) {
    return settings;
  }
  return (await readConfigured(command, makeSecret())).settings;
}

/** To look at an empty folder must not fill it with a new database. */
async function startFound({ data }: Settings) {
  if (!existsSync(join(data, "postgres")) && !existsSync(join(data, "postgres.location"))) {
    throw new UkemiError(
      "invalid_option",
      `There is no store in ${data}: set DATABASE_URL, or name the folder of the server with --data.`,
    );
  }
  return startEmbedded({ data });
}

/** What is no flag, but an argument. */
const ARGUMENTS: Readonly<Record<string, string>> = { name: "The name", ids: "The ids" };

/** What the API calls a wrong parameter, or does not find, is a wrong flag or argument here. */
function asUsage(error: unknown): unknown {
  if (!(error instanceof UkemiError)) return error;
  if (error.code !== "invalid_parameter" && error.code !== "not_found") return error;
  const message = error.message.replace(
    /^The parameter "(\w+)"/,
    (_, name: string) => ARGUMENTS[name] ?? `--${name.replaceAll(/[A-Z]/g, "-$&").toLowerCase()}`,
  );
  return new UkemiError("invalid_option", message, { cause: error });
}

/** Who runs the command, for the audit. */
export function actor(): string {
  try {
    return `cli:${userInfo().username}`;
  } catch {
    return `cli:${process.getuid?.() ?? "unknown"}`; // a container may run under a number without a name
  }
}
