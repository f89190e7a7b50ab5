// The embedded PostgreSQL: a real server in the data folder, started and ended with this process.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { steadyMs } from "../../clock.ts";
import { UkemiError } from "../../errors.ts";
import { urlOf } from "./address.ts";
import type { Address } from "./address.ts";
import { adoptOrClear } from "./adopt.ts";
import { findBinaries } from "./binaries.ts";
import { checkVersion, ensureCluster, readPassword } from "./cluster.ts";
import { asUkemiError } from "./faults.ts";
import { openDataFolder } from "./folder.ts";
import type { DataFolder } from "./folder.ts";
import { greet } from "./greet.ts";
import { chooseIdentity } from "./identity.ts";
import type { Way } from "./identity.ts";
import { launch, readyMsMax } from "./launch.ts";
import type { Launched } from "./launch.ts";
import { linkLibraries } from "./libraries.ts";
import { withLock } from "./lock.ts";
import { endServer } from "./occupant.ts";
import { forgetOwner, noteOwner } from "./owner.ts";
import { followPointer } from "./relocate.ts";

/** A running embedded server. */
export interface EmbeddedPostgres {
  /** Connection string for `pg`, database "ukemi", UTF8. */
  readonly url: string;
  /** Of the server, such as "18.4". */
  readonly version: string;
  /**
   * True where a server that already ran on this folder is used: `stop()` then leaves it running. It ends with the
   * process that started it, and our connections with it; `startEmbedded` then starts a new one at the same place.
   */
  readonly adopted: boolean;
  /** Of the postmaster. */
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
  try {
    const folder = await openDataFolder(data);
    return await withLock(folder.lock, readyMsMax, () => joinOrStart(folder, options));
  } catch (error) {
    throw asUkemiError(error, data);
  }
}

async function joinOrStart(found: DataFolder, options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const begun = steadyMs();
  const say = (message: string, fields: Record<string, unknown>) =>
    options.log?.(message, { ...fields, duration_ms: Math.round(steadyMs() - begun) });

  await followPointer(found);
  const running = existsSync(found.cluster) ? await adoptOrClear(found) : undefined;
  if (running) {
    say("joined the embedded PostgreSQL that runs on this folder", {
      pid: running.pid,
      version: running.version,
    });
    return await handle(found, running, {
      version: running.version,
      adopted: true,
      stop: async () => undefined,
    });
  }

  const binaries = findBinaries(options.binaries);
  const libraries = await linkLibraries(binaries, found.shim);
  const installation = await chooseIdentity({ folder: found, binaries, libraries, way: options.way });
  const folder = { ...found, cluster: installation.cluster };
  await checkVersion(folder.cluster, installation.major);
  await ensureCluster(installation, folder);
  const server = await launch(installation, folder, options.settings ?? {});
  await noteOwner(folder, server.pid);
  const greeting = await greet(server.address, await readPassword(folder.cluster), folder.cluster);
  if (greeting.kind !== "ready") {
    await stopServer(folder, server);
    throw new UkemiError(
      "embedded_failed",
      `PostgreSQL started but is ${greeting.kind}; its log is ${folder.log}.`,
    );
  }
  const { version } = greeting;
  say("started the embedded PostgreSQL", {
    pid: server.pid,
    version,
    data: folder.root,
    way: installation.identity.way,
  });
  return await handle(folder, server, { version, adopted: false, stop: () => stopServer(folder, server) });
}

async function handle(
  { cluster }: DataFolder,
  { pid, address }: { pid: number; address: Address },
  rest: Pick<EmbeddedPostgres, "version" | "adopted" | "stop">,
): Promise<EmbeddedPostgres> {
  let stopping: Promise<void> | undefined;
  const url = urlOf(address, await readPassword(cluster));
  return { ...rest, url, pid, stop: () => (stopping ??= rest.stop()) };
}

async function stopServer(folder: DataFolder, server: Launched): Promise<void> {
  await endServer(server.pid, folder.cluster);
  await server.ended;
  await forgetOwner(folder, server.pid);
}
