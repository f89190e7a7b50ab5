// The embedded PostgreSQL: a real server in the data folder, started and ended with this process.
import { resolve } from "node:path";
import { urlOf } from "./address.ts";
import { readPassword } from "./cluster.ts";
import { asUkemiError } from "./faults.ts";
import { openDataFolder } from "./folder.ts";
import type { Way } from "./identity.ts";
import { joinOrStart } from "./join.ts";
import { keep } from "./keep.ts";
import { readyMsMax } from "./launch.ts";
import { withLock } from "./lock.ts";

/** A running embedded server. */
export interface EmbeddedPostgres {
  /** Connection string for `pg`, database "ukemi", UTF8. */
  readonly url: string;
  /** Of the server, such as "18.4". */
  readonly version: string;
  /**
   * True where a server that already ran on this folder is used: `stop()` then leaves it running. It ends with the
   * process that started it, and our connections with it. We then start it again, at the same URL, and this turns false.
   */
  readonly adopted: boolean;
  /** Of the postmaster; another one after a restart. */
  readonly pid: number;
  /** Ends the server we started: open transactions roll back, connections close. Safe to call more than once. */
  stop(): Promise<void>;
}

/** What `startEmbedded` needs to know. */
export interface EmbeddedOptions {
  /** Data folder; the cluster goes into `<data>/postgres`, the server's log into `<data>/postgres.log`. */
  readonly data: string;
  /** Folder with initdb and postgres. @default the npm platform package */
  readonly binaries?: string;
  /** More PostgreSQL settings; they win over ours. */
  readonly settings?: Record<string, string>;
  /** Told in one line what was started or adopted. */
  readonly log?: (message: string, fields?: Record<string, unknown>) => void;
  /** For tests only: the one way of becoming an unprivileged user that may be tried. @default each, in order */
  readonly way?: Way;
}

/** Starts the server of the folder, or joins the one that runs there. */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const data = resolve(options.data);
  const join = async (mayCreate: boolean) => {
    const folder = await openDataFolder(data, mayCreate);
    return await withLock(folder.lock, readyMsMax, () => joinOrStart(folder, { ...options, mayCreate }));
  };
  try {
    const first = await join(true);
    const url = urlOf(first.address, await readPassword(first.cluster));
    const say = (message: string, reason?: string) => options.log?.(message, { data, reason });
    const kept = keep(first, () => join(false), say);
    return {
      url,
      version: first.version,
      get adopted() {
        return kept.current.adopted;
      },
      get pid() {
        return kept.current.pid;
      },
      stop: kept.stop,
    };
  } catch (error) {
    throw asUkemiError(error, data);
  }
}
