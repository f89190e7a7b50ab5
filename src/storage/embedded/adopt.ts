// Decides about a server that is already there: use it, wait for it, or clear it away.
import { sleep, steadyMs } from "../../clock.ts";
import { UkemiError } from "../../errors.ts";
import { addressOf } from "./address.ts";
import type { Address } from "./address.ts";
import { readPassword } from "./cluster.ts";
import type { DataFolder } from "./folder.ts";
import { greet } from "./greet.ts";
import { readyMsMax } from "./launch.ts";
import { endServer, evictDead, isGone, readOccupant, sightOccupant } from "./occupant.ts";
import type { Occupant } from "./occupant.ts";
import { isOrphan } from "./owner.ts";

/** A running server that another process started. */
export interface Adopted {
  readonly pid: number;
  readonly address: Address;
  readonly version: string;
  /** False where its process cannot be seen from here: that of another container. */
  readonly isSeen: boolean;
}

/** How long the watcher of a killed owner gets to stop its server before we do it. */
const watcherMs = 1_000;

/** Returns the running server of this folder, or undefined once the folder is free for a new one. */
export async function adoptOrClear(folder: DataFolder): Promise<Adopted | undefined> {
  const { cluster } = folder;
  const deadline = steadyMs() + readyMsMax;
  while (steadyMs() < deadline) {
    const occupant = await readOccupant(cluster);
    if (!occupant) return undefined;
    const lives = (await sightOccupant(occupant, cluster)) === "ours";
    if (lives && (await isOrphan(folder, occupant.pid))) {
      if (!(await isGone(occupant.pid, cluster, watcherMs))) await endServer(occupant.pid, cluster);
      continue;
    }
    const greeting = await knock(occupant, cluster);
    if (greeting.kind === "ready") return { ...greeting.server, isSeen: lives };
    if (greeting.kind === "nobody" && !lives) {
      await evictDead(occupant, cluster);
      return undefined;
    }
    if (greeting.kind === "nobody" && greeting.reason.startsWith("28")) {
      throw inUse(occupant, cluster, "it refuses our password");
    }
    await sleep(20);
  }
  throw inUse(await readOccupant(cluster), cluster, "it does not get ready");
}

function inUse(occupant: Occupant | undefined, cluster: string, but: string): UkemiError {
  return new UkemiError(
    "data_folder_in_use",
    `A PostgreSQL server (pid ${occupant?.pid}) runs on ${cluster}, but ${but}. Stop it, or choose another data folder.`,
  );
}

type Knock =
  | { readonly kind: "ready"; readonly server: Omit<Adopted, "isSeen"> }
  | { readonly kind: "busy" }
  | { readonly kind: "nobody"; readonly reason: string };

/** Knocks even where the pid says nothing: it may be that of another container on the same folder. */
async function knock({ pid, port }: Occupant, cluster: string): Promise<Knock> {
  if (port === 0) return { kind: "nobody", reason: "no port" };
  const address = addressOf(cluster, port);
  const greeting = await greet(address, await readPassword(cluster), cluster);
  if (greeting.kind !== "ready") return greeting;
  return { kind: "ready", server: { pid, address, version: greeting.version } };
}
