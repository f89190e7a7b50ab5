// The peers live in a folder of their own (bench/peers), so that nobody who uses Ukemi installs them.
import { createRequire } from "node:module";

const require = createRequire(new URL("peers/package.json", import.meta.url));

/** Loads a peer. `T` is what the caller uses of it: its own types are not there when the rest is checked. */
export async function peer<T>(name: string): Promise<T> {
  return (await require(name)) as T;
}
