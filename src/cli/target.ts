// What a command acts on: a server, or the database itself. Either way it speaks the admin API.
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { ApiError, createClient, type Client } from "../client/client.ts";
import { catalogue, UkemiError, type ErrorCode } from "../errors.ts";
import { createOperate } from "../operate/operate.ts";
import { createOperationRound } from "../operate/operation-round.ts";
import { makeRounds } from "../operate/rounds.ts";
import type { OptionName, Settings } from "../options.ts";
import { createApi } from "../server/api.ts";
import { startEmbedded } from "../storage/embedded/embedded.ts";
import { readMigrations, readSchema, requireSchema } from "../storage/migrate.ts";
import { explain } from "../storage/open.ts";
import { closePool, openPool, type Pool } from "../storage/postgres.ts";
import { readConfigured, withConfig } from "./config.ts";
import { makeSecret } from "./dev-secret.ts";
import { settingsOf, withFlags } from "./settings.ts";

const READ_TIMEOUT_MS = 60_000;
const CALL_TIMEOUT_MS = 120_000;
const CONNECTIONS = 3;

/** Adds the flags that say what a command acts on. */
export function withTarget(command: Command): Command {
  command.option(
    "--url <url>",
    "Server to ask, with the token of UKEMI_TOKEN. Unset: the database is asked directly. [UKEMI_URL]",
  );
  return withFlags(withConfig(command), ["database", "data"]);
}

/** Adds the flags of commands that open the database themselves. */
export function withStoreFlags(command: Command, more: readonly OptionName[] = []): Command {
  return withFlags(withConfig(command), ["database", "data", ...more]);
}

/** What a command needs of the store where there is no server. */
export interface TargetNeeds {
  readonly runsOperations?: boolean;
  /** Limits and keys may stand in the configuration file: it is read also where the database is given. */
  readonly readsFile?: boolean;
}

/**
 * Runs the work with a client of the server, or of the API on the database itself. With `runsOperations` and no server, this
 * process makes the steps of operations for as long as the work lasts: there may be nobody else who does.
 */
export async function withApi<T>(
  command: Command,
  work: (api: Client) => Promise<T>,
  { runsOperations = false, readsFile = false }: TargetNeeds = {},
): Promise<T> {
  const url = urlOf(command);
  try {
    if (url !== undefined) {
      const token = process.env.UKEMI_TOKEN || undefined;
      return await work(createClient({ url, token, timeoutMs: CALL_TIMEOUT_MS }));
    }
    return await withStore(
      command,
      (pool, settings) => {
        const client = clientOf(pool, settings);
        return runsOperations ? whileRunning(pool, () => work(client)) : work(client);
      },
      { readsFile },
    );
  } catch (error) {
    throw asUsage(error);
  }
}

/** What answers may be no Ukemi at all, though it speaks JSON. */
export function requireOurs<T>(answer: T, field: "id" | "items"): T {
  if (typeof answer === "object" && answer !== null && field in answer) return answer;
  throw notUkemi("What answers is not Ukemi.");
}

function notUkemi(message: string, cause?: unknown): UkemiError {
  const remedy = "Check UKEMI_URL or --url: the server's URL, without /api/v1.";
  return new UkemiError("server_unreachable", message, { cause, remedy });
}

/** Makes the steps of operations until the work has ended. */
async function whileRunning<T>(pool: Pool, work: () => Promise<T>): Promise<T> {
  const ended = new AbortController();
  const tell = () => {};
  const round = createOperationRound({ alert: tell, tell });
  const making = makeRounds([round], () => Promise.resolve(pool), tell, ended.signal);
  try {
    return await work();
  } finally {
    ended.abort();
    await making;
  }
}

/** The server that is meant; a database that was named by a flag is nearer than a server from the environment. */
function urlOf(command: Command): string | undefined {
  const flags = command.opts<{ url?: string; database?: string; data?: string }>();
  const isStore = flags.database !== undefined || flags.data !== undefined;
  if (flags.url !== undefined && isStore) {
    throw new UkemiError("invalid_option", "Give --url, or --database or --data: not both.");
  }
  const url = flags.url ?? (isStore ? undefined : process.env.UKEMI_URL || undefined);
  if (url === undefined) return undefined;
  const name = flags.url === undefined ? "UKEMI_URL" : "--url";
  if (URL.canParse(url) && /^https?:/.test(url)) {
    const { username, password } = new URL(url);
    if (username === "" && password === "") return url;
    throw new UkemiError("invalid_option", `${name} must not carry a name or password: set UKEMI_TOKEN.`);
  }
  throw new UkemiError("invalid_option", `${name} must be a URL such as https://ukemi.example.com.`);
}

/** The API in this very process, for whoever may open the database. */
function clientOf(pool: Pool, settings: Settings): Client {
  const open = () => Promise.resolve(pool);
  const operate = createOperate({
    open,
    readTimeoutMs: READ_TIMEOUT_MS,
    bodyKeys: settings.bodyKeys,
    limits: settings,
  });
  const api = createApi({ operate, open, tell: () => {} });
  const caller = { actor: actor(), identity: actor(), scope: "admin" } as const;
  return createClient({
    url: "http://store",
    fetch: (request) => api(request, crypto.randomUUID(), () => Promise.resolve(caller)),
    timeoutMs: CALL_TIMEOUT_MS,
  });
}

/** Runs the work on the store of the command's settings: the given database, or the embedded one, which a server may be using. */
export async function withStore<T>(
  command: Command,
  work: (pool: Pool, settings: Settings) => Promise<T>,
  { readsFile = false }: TargetNeeds = {},
): Promise<T> {
  const settings = await readStore(command, readsFile);
  const embedded = settings.database === undefined ? await startFound(settings) : undefined;
  const pool = openPool(embedded?.url ?? settings.database!, {
    max: CONNECTIONS,
    name: "ukemi cli",
    queryTimeoutMs: 0, // Ctrl-C ends what takes too long
  });
  try {
    requireSchema(await readSchema(pool), await readMigrations());
    return await work(pool, settings);
  } catch (error) {
    throw error instanceof ApiError ? error : explain(error);
  } finally {
    await closePool(pool);
    await embedded?.stop();
  }
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

/** What is no flag, but an argument. */
const ARGUMENTS: Readonly<Record<string, string>> = { name: "The name", ids: "The ids" };

/** What the API calls a wrong parameter is a wrong flag or argument here. */
function asUsage(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  const { code, message, cause, requestId } = error;
  if (code === "not_found") {
    return new UkemiError("not_found", message, { cause: error, remedy: "Check the name or the id." });
  }
  if (code === "invalid_parameter") {
    const said = message.replace(
      /^The parameter "(\w+)"/,
      (_, name: string) => ARGUMENTS[name] ?? `--${name.replaceAll("_", "-")}`,
    );
    return new UkemiError("invalid_option", said, { cause: error });
  }
  if (!Object.hasOwn(catalogue, code)) return notUkemi(message, error);
  const known = new UkemiError(code as ErrorCode, message, { cause: cause ?? error });
  if (code === "unauthorized") {
    const remedy = "Set UKEMI_TOKEN to a token of the server: an admin makes one with ukemi token create.";
    return new UkemiError("unauthorized", message, { cause: error, remedy });
  }
  return code === "internal"
    ? new UkemiError("internal", `${message} (request ${requestId})`, { cause: error })
    : known;
}

/** Who runs the command, for the audit. */
export function actor(): string {
  try {
    return `cli:${userInfo().username}`;
  } catch {
    return `cli:${process.getuid?.() ?? "unknown"}`; // a container may run under a number without a name
  }
}
