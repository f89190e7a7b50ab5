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
import type { Tell } from "../news.ts";

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
  /** Told what was started or joined, and what went wrong with it. */
  readonly tell?: Tell;
  /** For tests only: the one way of becoming an unprivileged user that may be tried. @default each, in order */
  readonly way?: Way;
}

/** Starts the server of the folder, or joins the one that runs there. */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const data = resolve(options.data);
  const join = async (mayCreate: boolean) => {
    const folder = await openDataFolder(data, mayCreate);
    const onWait = (holder: string) =>
      options.tell?.("warn", `waiting for ${holder}, which is starting PostgreSQL on this folder`, { data });
    return await withLock({ path: folder.lock, waitMs: readyMsMax, onWait }, () =>
      joinOrStart(folder, { ...options, mayCreate }),
    );
  };
  try {
    const first = await join(true);
    const url = urlOf(first.address, await readPassword(first.cluster));
    const tell: Tell = (level, message, fields) => options.tell?.(level, message, { data, ...fields });
    const kept = keep(first, () => join(false), tell);
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
