// Starts `postgres` on a cluster and waits until it takes connections.
import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { sleep, steadyMs } from "../../clock.ts";
import type { UkemiError } from "../../errors.ts";
import { chooseAddress, listenSettings } from "./address.ts";
import type { Address } from "./address.ts";
import { programFault } from "./faults.ts";
import type { DataFolder } from "./folder.ts";
import { spawnGuarded } from "./guard.ts";
import type { Installation } from "./identity.ts";
import { openJournal, quote } from "./journal.ts";
import { endServer, readOccupant } from "./occupant.ts";
import { settingArguments } from "./settings.ts";

/** A server this process started. */
export interface Launched {
  readonly pid: number;
  readonly address: Address;
  /** Settles when the server has ended, for whatever reason. */
  readonly ended: Promise<void>;
  /** Ends it: open transactions roll back, connections close. */
  end(): Promise<void>;
}

/** Recovery after a crash may replay much log before the server is ready. */
export const readyMsMax = 300_000;

// Worth another try: a port taken between choosing and binding, and backends of a killed server that still linger.
const passing = /Address already in use|is still in use|already exists/;
const tries = 20;

/** Starts the server; throws with the last lines of its log where it does not get ready. */
export async function launch(
  installation: Installation,
  folder: DataFolder,
  settings: Readonly<Record<string, string>>,
): Promise<Launched> {
  for (let attempt = 1; ; attempt++) {
    const result = await launchOnce(installation, folder, settings);
    if ("pid" in result) return result;
    if (attempt === tries || !passing.test(result.message)) throw result;
    await sleep(100);
  }
}

async function launchOnce(
  installation: Installation,
  folder: DataFolder,
  settings: Readonly<Record<string, string>>,
): Promise<Launched | UkemiError> {
  const { binaries, cluster } = installation;
  const address = await chooseAddress(cluster);
  const args = ["-D", cluster, ...settingArguments(listenSettings(address), settings)];
  const { child, ended, from } = await spawnLogged(
    installation,
    [join(binaries, "postgres"), ...args],
    folder.log,
  );
  const isReady = await becomesReady(child, cluster);
  const { pid } = child;
  const end = async () => {
    child.ref(); // now this process waits for it
    await endServer(pid ?? 0, cluster);
    await ended;
  };
  if (isReady && pid !== undefined) return { pid, address, ended, end };
  const said = await quote(folder.log, from);
  return await programFault(`PostgreSQL did not start (its log: ${folder.log})`, said, folder.root);
}

async function spawnLogged(installation: Installation, command: readonly string[], log: string) {
  const journal = await openJournal(log);
  try {
    const child = spawnGuarded(installation, command, journal.handle.fd);
    return { child, ended: endOf(child), from: journal.size };
  } finally {
    await journal.handle.close();
  }
}

function endOf(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.on("exit", () => resolve());
    child.on("error", () => resolve());
  });
}

/** Polls the state that the server itself keeps in postmaster.pid. */
async function becomesReady(child: ChildProcess, cluster: string): Promise<boolean> {
  const deadline = steadyMs() + readyMsMax;
  const lives = () => child.pid !== undefined && child.exitCode === null && child.signalCode === null;
  while (lives() && steadyMs() < deadline) {
    const occupant = await readOccupant(cluster);
    if (occupant?.pid === child.pid && occupant?.ready) return true;
    await sleep(5);
  }
  if (lives()) child.kill("SIGQUIT");
  return false;
}
