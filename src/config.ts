// What an application writes into ukemi.config.ts: options, sources, and its handlers.
import type { Sources, Ukemi, UkemiOptions } from "./ukemi.ts";

/** The content of a configuration file. Flags and environment variables win over its options. */
export interface Config<S extends Sources = Sources> extends UkemiOptions<S> {
  /** Adds the handlers with `ukemi.on()` and `ukemi.task()`. */
  readonly handlers?: (ukemi: Ukemi<S>) => void | Promise<void>;
}

/** Gives the content of a configuration file its types: `export default defineConfig({ … })`. */
export function defineConfig<const S extends Sources>(config: Config<S>): Config<S> {
  return config;
}
