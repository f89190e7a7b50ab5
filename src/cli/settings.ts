// Flags of a command, made from the declarations of the options.
import type { Command } from "commander";
import { OPTIONS, readSettings, showOption, UNSET, type OptionName } from "../options.ts";

/** Adds the flags of the named options to a command. */
export function withFlags(command: Command, names: readonly OptionName[]): Command {
  for (const name of names) {
    const declaration: { flag?: string; text: string; default: unknown; env?: string } = OPTIONS[name];
    const value = typeof declaration.default === "boolean" ? "" : " <value>";
    const env = declaration.env === undefined ? "" : ` [${declaration.env}]`;
    const shown = showOption(name, declaration.default);
    const fallback = value === "" || shown === UNSET ? "" : ` Default: ${shown}.`;
    command.option(`--${declaration.flag}${value}`, `${declaration.text}${fallback}${env}`);
  }
  return command;
}

/** The settings of a command: its flags, then the environment, then the configuration file, then the defaults. */
export function settingsOf(
  command: Command,
  config: Readonly<Record<string, unknown>> | object = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
): ReturnType<typeof readSettings> {
  const given = command.opts<Record<string, string | boolean | undefined>>();
  const flags: Record<string, string | boolean | undefined> = {};
  for (const [name, declaration] of Object.entries(OPTIONS) as [OptionName, { flag?: string }][]) {
    if (declaration.flag !== undefined) flags[name] = given[camelCase(declaration.flag)];
  }
  return readSettings(flags, env, config as Readonly<Record<string, unknown>>);
}

function camelCase(flag: string): string {
  return flag.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
