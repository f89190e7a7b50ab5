// As whom PostgreSQL runs: it refuses to be root, and needs a named account that can enter its folders.
import { dirname, join } from "node:path";
import { UkemiError } from "../../errors.ts";
import { lacksGlibc, majorVersion } from "./binaries.ts";
import type { DataFolder } from "./folder.ts";
import { isKnown, unprivilegedAccount } from "./passwd.ts";
import type { Account } from "./passwd.ts";
import { environment, run } from "./program.ts";
import { relocate } from "./relocate.ts";

/** The ways to become somebody PostgreSQL accepts, in the order they are tried. */
export type Way = "self" | "drop" | "unshare" | "relocate";

/** As whom the programs run. */
export interface Identity {
  readonly way: Way;
  /** Put before the command. */
  readonly prefix: readonly string[];
  /** Given to spawn; absent where we stay who we are. */
  readonly drop?: { readonly uid: number; readonly gid: number };
  /** Who must own the cluster, as the machine sees it. */
  readonly owner: { readonly uid: number; readonly gid: number };
}

/** Everything needed to run a PostgreSQL program on this folder. */
export interface Installation {
  readonly identity: Identity;
  readonly binaries: string;
  readonly env: NodeJS.ProcessEnv;
  readonly major: number;
  /** Where the cluster is, or will be made. */
  readonly cluster: string;
}

interface Wanted {
  readonly folder: DataFolder;
  readonly binaries: string;
  readonly libraries: string | undefined;
  /** Only this way (tests). */
  readonly way?: Way | undefined;
}

/** Tries the ways in order until the programs run and the folder can be entered. */
export async function chooseIdentity(wanted: Wanted): Promise<Installation> {
  const refusals: string[] = [];
  for (const identity of await candidates(wanted.way)) {
    const place = identity.way === "relocate" ? await relocate(wanted, identity) : wanted;
    const env = environment(place.libraries);
    const cluster = place.folder.cluster;
    // One probe for all: the folder opens, the program starts, its libraries are found.
    const probe = [
      "sh",
      "-c",
      'cd "$1" && exec "$2" --version',
      "sh",
      dirname(cluster),
      join(place.binaries, "postgres"),
    ];
    const { code, output, errors } = await run(probe, identity, env);
    if (code === 0) return { identity, binaries: place.binaries, env, major: majorVersion(output), cluster };
    refusals.push(`${identity.way}: ${errors.trim() || `exit ${code}`}`);
  }
  throw refused(refusals);
}

async function candidates(only: Way | undefined): Promise<readonly Identity[]> {
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  const unprivileged = await unprivilegedAccount();
  const all: Identity[] = [];
  if (uid !== 0 && (await isKnown(uid))) all.push({ way: "self", prefix: [], owner: { uid, gid } });
  if (uid === 0 && unprivileged) all.push(dropped("drop", unprivileged));
  if (unprivileged && process.platform === "linux") all.push(unshared(unprivileged, { uid, gid }));
  if (uid === 0 && unprivileged) all.push(dropped("relocate", unprivileged));
  return only === undefined ? all : all.filter((identity) => identity.way === only);
}

function dropped(way: Way, { uid, gid }: Account): Identity {
  return { way, prefix: [], drop: { uid, gid }, owner: { uid, gid } };
}

/** A user namespace in which we bear the account's number: no chown, and every folder of ours stays open. */
function unshared(as: Account, owner: Identity["owner"]): Identity {
  return {
    way: "unshare",
    prefix: ["unshare", `--map-user=${as.uid}`, `--map-group=${as.gid}`, "--"],
    owner,
  };
}

function refused(refusals: readonly string[]): UkemiError {
  if (lacksGlibc()) {
    return new UkemiError(
      "embedded_unsupported",
      "The embedded PostgreSQL needs glibc, which this system (Alpine?) does not have. " +
        "Use a Debian-based image such as node:20-slim, or set DATABASE_URL.",
    );
  }
  const tried = refusals.length === 0 ? "no account to run as was found in /etc/passwd" : refusals.join("; ");
  return new UkemiError(
    "embedded_failed",
    `PostgreSQL cannot be run here: ${tried}. ` +
      "Run as a user that /etc/passwd knows and that may enter the data folder and node_modules, or set DATABASE_URL.",
  );
}
