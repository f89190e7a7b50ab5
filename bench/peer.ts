// The peers are installed in a folder of their own, so that nobody else has to install them.
import { createRequire } from "node:module";

const inPeers = createRequire(new URL("peers/package.json", import.meta.url));

/** Loads a package of bench/peers; `T` says what is used of it. */
export async function peer<T>(name: string): Promise<T> {
  return Promise.resolve(inPeers(name) as T);
}

/** True where it is there. */
export function hasPeer(name: string): boolean {
  try {
    inPeers.resolve(name);
    return true;
  } catch {
    return false;
  }
}
