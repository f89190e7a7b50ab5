// Finding and loading the configuration file, TypeScript included, without a build step.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Command } from "commander";
import type { Config } from "../config.ts";
import { UkemiError } from "../errors.ts";
import { OPTION_NAMES, OPTIONS } from "../options.ts";
import { settingsOf } from "./settings.ts";

/** Looked for in the working directory, in this order. */
const NAMES = ["ukemi.config.ts", "ukemi.config.mts", "ukemi.config.js", "ukemi.config.mjs"];

const KEYS: ReadonlySet<string> = new Set([
  ...OPTION_NAMES,
  "sources",
  "queues",
  "onAlert",
  "logger",
  "handlers",
]);

/** The flag of every command that reads the configuration file. */
export function withConfig(command: Command): Command {
  return command.option(
    "--config <file>",
    "Configuration file with options, sources and handlers. Default: ukemi.config.ts, .mts, .js or .mjs in the working directory.",
  );
}

/** The settings of a command with the file that some of them came from. */
export type Configured = ReturnType<typeof settingsOf> & { readonly config: Config | undefined };

/**
 * Reads flags, environment and configuration file. Where STRIPE_WEBHOOK_SECRET is not set, `standIn` takes its place for
 * the file, which could not be loaded without it; the settings are read as if it were not there.
 */
export async function readConfigured(command: Command, standIn?: string): Promise<Configured> {
  const name = OPTIONS.stripeSecrets.env!;
  if (standIn !== undefined && !process.env[name]) process.env[name] = standIn;
  const config = await loadConfig(command.opts<{ config?: string }>().config);
  // only now: the file may have read others from a file of its own
  const env = process.env[name] === standIn ? { ...process.env, [name]: undefined } : process.env;
  return { config, ...settingsOf(command, config, env) };
}

/** Loads the given file, or the one in the working directory; undefined where there is none. */
async function loadConfig(given: string | undefined): Promise<Config | undefined> {
  const path = given === undefined ? NAMES.find((name) => existsSync(name)) : given;
  if (path === undefined) return undefined;
  const file = resolve(path);
  if (!existsSync(file)) throw new UkemiError("invalid_option", `There is no configuration file ${path}.`);
  const config = await importDefault(file).catch((error: unknown) => {
    if (error instanceof UkemiError) throw error;
    const said = error instanceof Error ? (error.stack ?? error.message) : String(error);
    throw new UkemiError("invalid_option", `${path} cannot be loaded: ${said}`, { cause: error });
  });
  return checkConfig(config, path);
}

/** Node reads TypeScript itself from 22.18 on; before that jiti does. */
async function importDefault(file: string): Promise<unknown> {
  const isTypeScript = /\.m?ts$/.test(file);
  const native = !isTypeScript || Boolean((process.features as { typescript?: unknown }).typescript);
  if (native) {
    const module = (await import(pathToFileURL(file).href)) as { default?: unknown };
    return module.default;
  }
  const { createJiti } = await import("jiti");
  return createJiti(import.meta.url, { fsCache: false }).import(file, { default: true });
}

/** Names every fault of the file at once. The options' values are checked together with flags and environment. */
function checkConfig(config: unknown, path: string): Config {
  if (typeof config !== "object" || config === null || Array.isArray(config)) {
    throw new UkemiError(
      "invalid_option",
      `${path} must export its configuration: export default defineConfig({ … }).`,
    );
  }
  const faults = Object.keys(config)
    .filter((key) => !KEYS.has(key))
    .map((key) => `${path}: there is no option named ${key}.`);
  const { sources, handlers } = config as Partial<Config>;
  if (typeof sources !== "object" || sources === null)
    faults.push(`${path}: sources must be an object of sources.`);
  if (handlers !== undefined && typeof handlers !== "function")
    faults.push(`${path}: handlers must be a function.`);
  if (faults.length > 0) throw new UkemiError("invalid_option", faults.join("\n"));
  return config as Config;
}
