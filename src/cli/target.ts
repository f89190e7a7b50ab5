// What a command acts on: a server, or the database itself. Either way it speaks the admin API.
import type { Command } from "commander";
import { createClient, type Client } from "../client/client.ts";
import { UkemiError } from "../errors.ts";
import { createOperate } from "../operate/operate.ts";
import { createOperationRound } from "../operate/operation-round.ts";
import { makeRounds } from "../operate/rounds.ts";
import type { Settings } from "../options.ts";
import { createApi } from "../server/api.ts";
import type { Pool } from "../storage/postgres.ts";
import { asUsage } from "./answers.ts";
import { withConfig } from "./config.ts";
import { actor } from "./consent.ts";
import { withFlags } from "./settings.ts";
import { withStore } from "./store.ts";

const READ_TIMEOUT_MS = 60_000;
const CALL_TIMEOUT_MS = 120_000;

/** Adds the flags that say what a command acts on. */
export function withTarget(command: Command): Command {
  command.option(
    "--url <url>",
    "Server to ask, with the token of UKEMI_TOKEN. Unset: the database is asked directly. [UKEMI_URL]",
  );
  return withFlags(withConfig(command), ["database", "data"]);
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
  work: (api: Client, place: string) => Promise<T>,
  { runsOperations = false, readsFile = false }: TargetNeeds = {},
): Promise<T> {
  const url = urlOf(command);
  try {
    if (url !== undefined) {
      const token = process.env.UKEMI_TOKEN || undefined;
      return await work(
        createClient({ url, token, timeoutMs: CALL_TIMEOUT_MS }),
        `the server ${withoutQuery(url)}`,
      );
    }
    return await withStore(
      command,
      (pool, settings, place) => {
        const client = clientOf(pool, settings);
        return runsOperations ? whileRunning(pool, () => work(client, place)) : work(client, place);
      },
      { readsFile },
    );
  } catch (error) {
    throw asUsage(error);
  }
}

/** A server or a worker that lives looks sooner than this, and its step is better: it can alert. */
const PATIENCE_MS = 4000;

/** Makes the steps of operations until the work has ended, where nobody else makes them. */
async function whileRunning<T>(pool: Pool, work: () => Promise<T>): Promise<T> {
  const ended = new AbortController();
  const tell = () => {};
  const round = createOperationRound({ alert: tell, tell, patienceMs: PATIENCE_MS });
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

/** A token may stand in the query: it is not shown. */
function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname.replace(/\/$/, "")}`;
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
