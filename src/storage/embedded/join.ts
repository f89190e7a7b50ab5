// The way to a running server: join the one that is there, or make everything ready and start one.
import { existsSync } from "node:fs";
import { steadyMs } from "../../clock.ts";
import { UkemiError } from "../../errors.ts";
import type { Address } from "./address.ts";
import { adoptOrClear } from "./adopt.ts";
import type { Adopted } from "./adopt.ts";
import { findBinaries } from "./binaries.ts";
import { checkVersion, ensureCluster, readPassword } from "./cluster.ts";
import type { EmbeddedOptions } from "./embedded.ts";
import type { DataFolder } from "./folder.ts";
import { greet } from "./greet.ts";
import { chooseIdentity } from "./identity.ts";
import type { Installation } from "./identity.ts";
import { launch } from "./launch.ts";
import { linkLibraries } from "./libraries.ts";
import { forgetOwner, noteOwner } from "./owner.ts";
import { sight, watchEnd } from "./processes.ts";
import { followPointer } from "./relocate.ts";

/** A server that takes connections, and our part in it. */
export interface Running {
  readonly pid: number;
  readonly address: Address;
  readonly version: string;
  readonly adopted: boolean;
  readonly cluster: string;
  /** Settles when the server has ended, or when `leave` was called. */
  readonly ended: Promise<void>;
  /** Ends the server where it is ours. */
  leave(): Promise<void>;
}

/** How to join or start. */
export interface JoinOptions extends EmbeddedOptions {
  /** False where the cluster was there before: it is then never made anew. */
  readonly mayCreate: boolean;
}

/** Call it with the lock of the folder held. */
export async function joinOrStart(folder: DataFolder, options: JoinOptions): Promise<Running> {
  const begun = steadyMs();
  await followPointer(folder);
  const found = existsSync(folder.cluster) ? await adoptOrClear(folder) : undefined;
  const running = found ? joined(found, folder) : await start(folder, options);
  options.tell?.(
    "info",
    running.adopted
      ? "adopted the embedded PostgreSQL that runs on this folder"
      : "started the embedded PostgreSQL",
    {
      pid: running.pid,
      version: running.version,
      data: folder.root,
      duration_ms: Math.round(steadyMs() - begun),
    },
  );
  return running;
}

function joined({ isSeen, ...server }: Adopted, { cluster }: DataFolder): Running {
  const { ended, cease } = watchEnd(async () => !isSeen || (await sight(server.pid, cluster)) === "ours");
  return { ...server, cluster, adopted: true, ended, leave: async () => cease() };
}

async function start(folder: DataFolder, options: JoinOptions): Promise<Running> {
  if (!options.mayCreate && !existsSync(folder.cluster)) {
    throw new UkemiError(
      "embedded_failed",
      `${folder.cluster} was there before and is gone. Start again to make a new one.`,
    );
  }
  const binaries = findBinaries(options.binaries);
  const libraries = await linkLibraries(binaries, folder.shim);
  const installation = await chooseIdentity({ folder, binaries, libraries, way: options.way });
  await checkVersion(installation.cluster, installation.major);
  await ensureCluster(installation, folder);
  return await launchAndGreet(installation, folder, options.settings ?? {});
}

async function launchAndGreet(
  installation: Installation,
  folder: DataFolder,
  settings: Readonly<Record<string, string>>,
): Promise<Running> {
  const { cluster } = installation;
  const { pid, address, ended, end } = await launch(installation, folder, settings);
  const leave = async () => {
    await end();
    await forgetOwner(folder, pid);
  };
  try {
    await noteOwner(folder, pid);
    const greeting = await greet(address, await readPassword(cluster), cluster);
    if (greeting.kind === "ready") {
      return { pid, address, version: greeting.version, adopted: false, cluster, ended, leave };
    }
    throw new UkemiError(
      "embedded_failed",
      `PostgreSQL started but is ${greeting.kind}; its log is ${folder.log}.`,
    );
  } catch (error) {
    await leave();
    throw error;
  }
}
