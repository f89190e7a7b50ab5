// Sending to a server of the ingest contest for a while, through the loader.
import type { Program } from "../programs.ts";
import type { Loaded } from "./load.ts";
import { SECRET, type Listening } from "./servers.ts";

export interface Shot {
  readonly seconds: number;
  /** How many requests are made ready for each second: more than the server answers. */
  readonly perSecond: number;
  /** The share of events that it has stored before. */
  readonly duplicates?: number;
  /** Requests a second; left out: as many as are answered. */
  readonly rate?: number;
}

/** Sends to a server, or to several of one database in turn, and says how it went. */
export type Shoot = (server: Target | readonly [Target, ...Target[]], shot: Shot) => Promise<Loaded>;

type Target = Pick<Listening, "name" | "path" | "port">;

const CONNECTIONS = 64;

/** A refusal ends the contest: a fast server that refuses is not fast. */
export function shootWith(loader: Program): Shoot {
  return async (target, { seconds, perSecond, duplicates, rate }) => {
    const targets = "name" in target ? ([target] as const) : target;
    const [{ name, path }] = targets;
    const ports = targets.map(({ port }) => port);
    const count = Math.ceil(perSecond * seconds);
    await loader.ask("prepare", { count, to: name, path, secret: SECRET, duplicates });
    const loaded = await loader.ask<Loaded>("load", { ports, connections: CONNECTIONS, seconds, rate });
    if (loaded.failed > 0) throw new Error(`${name} refused ${loaded.failed} events`);
    return loaded;
  };
}
