// The Ukemi that a command runs: settings of flags, environment and configuration file, its sources and its handlers.
import { resolve } from "node:path";
import type { Command } from "commander";
import type { Config } from "../config.ts";
import { UkemiError } from "../errors.ts";
import type { Origin, OptionName, Settings } from "../options.ts";
import type { Source } from "../sources/source.ts";
import { stripe } from "../sources/stripe.ts";
import { createUkemi, type Ukemi } from "../ukemi.ts";
import { readConfigured } from "./config.ts";
import { explainFailure } from "./load.ts";
import { strayVariables } from "./variables.ts";

export interface Application {
  readonly ukemi: Ukemi;
  readonly settings: Settings;
  /** True where there are handlers to work for. */
  readonly hasHandlers: boolean;
}

/** What a command changes before the Ukemi is made. */
export type Adjust = (settings: Settings, origins: Readonly<Record<OptionName, Origin>>) => Promise<Settings>;

/** Reads everything, and makes the Ukemi with its handlers. `standIn` is the signing secret of a file that finds none. */
export async function openApplication(
  command: Command,
  adjust: Adjust = (settings) => Promise.resolve(settings),
  standIn?: string,
): Promise<Application> {
  const { config, file, ...read } = await readConfigured(command, standIn);
  const settings = await adjust(read.settings, read.origins);
  const ukemi = createUkemi({
    ...settings,
    ...partsOf(config),
    sources: config?.sources ?? sourcesOf(settings),
  });
  for (const words of strayVariables(process.env)) ukemi.logger.warn(words);
  await addHandlers(ukemi, config, file ?? "");
  return { ukemi, settings, hasHandlers: config?.handlers !== undefined };
}

async function addHandlers(ukemi: Ukemi, config: Config | undefined, file: string): Promise<void> {
  try {
    await config?.handlers?.(ukemi);
  } catch (error) {
    const words = `${file}: its handlers cannot be added: ${explainFailure(error, resolve(file))}`;
    throw new UkemiError("invalid_option", words, { cause: error });
  }
}

function partsOf(config: Config | undefined): Pick<Config, "queues" | "onAlert" | "logger"> {
  const { queues, onAlert, logger } = config ?? {};
  return { ...(queues && { queues }), ...(onAlert && { onAlert }), ...(logger && { logger }) };
}

/** The sources that need no configuration file. */
function sourcesOf(settings: Settings): Record<string, Source> {
  return settings.stripeSecrets.length === 0 ? {} : { stripe: stripe({ secrets: settings.stripeSecrets }) };
}
