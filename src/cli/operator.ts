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
import { settingsOf } from "./settings.ts";

const READ_TIMEOUT_MS = 60_000;
const CONNECTIONS = 3;

/** Runs the work on the store of the command's settings. */
export async function withOperate<T>(command: Command, work: (operate: Operate) => Promise<T>): Promise<T> {
  const { settings } = settingsOf(command);
  const embedded = settings.database === undefined ? await startFound(settings) : undefined;
  const pool = openPool(embedded?.url ?? settings.database!, {
    max: CONNECTIONS,
    name: "ukemi cli",
    queryTimeoutMs: 0, // Ctrl-C ends what takes too long
  });
  try {
    requireSchema(await readSchema(pool), await readMigrations());
    return await work(createOperate({ open: () => Promise.resolve(pool), readTimeoutMs: READ_TIMEOUT_MS }));
  } catch (error) {
    throw asUsage(explain(error));
  } finally {
    await closePool(pool);
    await embedded?.stop();
  }
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

/** What the API calls a wrong parameter is a wrong flag or argument here. */
function asUsage(error: unknown): unknown {
  return error instanceof UkemiError && error.code === "invalid_parameter"
    ? new UkemiError("invalid_option", error.message, { cause: error })
    : error;
}

/** Who runs the command, for the audit. */
export function actor(): string {
  try {
    return `cli:${userInfo().username}`;
  } catch {
    return `cli:${process.getuid?.() ?? "unknown"}`; // a container may run under a number without a name
  }
}
