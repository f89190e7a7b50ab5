// Finding the configuration file, and reading it together with flags and environment.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import type { Config } from "../config.ts";
import { UkemiError } from "../errors.ts";
import { examineSettings, OPTIONS, type ExaminedSettings } from "../options.ts";
import { partFaults } from "../parts.ts";
import { explainFailure, importDefault } from "./load.ts";
import { flagsOf } from "./settings.ts";

/** Looked for in the working directory, in this order. */
export const CONFIG_NAMES = ["ukemi.config.ts", "ukemi.config.mts", "ukemi.config.js", "ukemi.config.mjs"];

/** The flag of every command that reads the configuration file. */
export function withConfig(command: Command): Command {
  return command.option(
    "--config <file>",
    "Configuration file with options, sources and handlers. Default: ukemi.config.ts, .mts, .js or .mjs in the working directory.",
  );
}

/** The settings of a command, with the file that some of them came from. */
export interface Configured extends Omit<ExaminedSettings, "faults"> {
  readonly config: Config | undefined;
  /** The file, as the person names it; undefined where there is none. */
  readonly file: string | undefined;
}

/** Reads flags, environment and configuration file; throws, naming every fault at once. */
export async function readConfigured(command: Command, standIn?: string): Promise<Configured> {
  const { faults, ...configured } = await examineConfigured(command, standIn);
  if (faults.length > 0) throw new UkemiError("invalid_option", faults.join("\n"));
  return configured;
}

/**
 * The same, going on after a fault: what a file says that is wrong counts as not said. Where STRIPE_WEBHOOK_SECRET is not
 * set, the file finds `standIn` in its place, without which it could not be loaded.
 */
export async function examineConfigured(
  command: Command,
  standIn?: string,
): Promise<Configured & { readonly faults: readonly string[] }> {
  const env = process.env;
  if (standIn !== undefined) lendSecret(standIn);
  const found = await findConfig(command.opts<{ config?: string }>().config);
  // only now: the file may have read others from a file of its own
  const { faults, ...read } = examineSettings({
    flags: flagsOf(command),
    env,
    config: { ...found.config },
    file: found.file,
  });
  const { config, file } = found;
  return {
    ...read,
    file,
    config: found.faults.length > 0 ? undefined : config,
    faults: [...found.faults, ...faults],
  };
}

/** A secret for who reads it, but none that is in the way of who sets it: a .env file must win. */
function lendSecret(standIn: string): void {
  const name = OPTIONS.stripeSecrets.env!;
  process.env = new Proxy(process.env, {
    get: (env, key) => (key === name ? env[name] || standIn : Reflect.get(env, key)),
    set: (env, key, value) => Reflect.set(env, key, value),
  });
}

interface Found {
  readonly file: string | undefined;
  readonly config?: Config;
  readonly faults: readonly string[];
}

/** The given file, or the one in the working directory, with its faults. */
async function findConfig(given: string | undefined): Promise<Found> {
  const file = given ?? CONFIG_NAMES.find((name) => existsSync(name));
  if (file === undefined) return { file, faults: [] };
  if (!existsSync(file)) return { file, faults: [`There is no configuration file ${file}.`] };
  try {
    return examineExport(await importDefault(resolve(file)), file);
  } catch (error) {
    return { file, faults: [`${file} cannot be loaded: ${explainFailure(error, resolve(file))}`] };
  }
}

/** The values of options are examined together with flags and environment. */
function examineExport(exported: unknown, file: string): Found {
  const how = "export default defineConfig({ … })";
  if (exported === undefined) return { file, faults: [`${file} must export its configuration: ${how}.`] };
  if (typeof exported !== "object" || exported === null || Array.isArray(exported)) {
    const what = Array.isArray(exported) ? "a list" : exported === null ? "null" : `a ${typeof exported}`;
    return { file, faults: [`${file} must export its configuration, an object, not ${what}: ${how}.`] };
  }
  const config = exported as Config & { readonly stripeSecrets?: unknown };
  const faults = partFaults({ ...config });
  const misplaced =
    config.stripeSecrets === undefined
      ? []
      : ["stripeSecrets has no place here: pass them to the source, stripe({ secrets: […] })."];
  return { file, config, faults: [...faults, ...misplaced].map((fault) => `${file}: ${fault}`) };
}
