// Flags of a command, made from the declarations of the options.
import type { Command } from "commander";
import { OPTION_NAMES, OPTIONS, readSettings, showOption, UNSET, type OptionName } from "../options.ts";

interface Declared {
  readonly flag?: string;
  readonly text: string;
  readonly default: unknown;
  readonly env?: string;
  readonly placeholder?: string;
  readonly choices?: readonly string[];
}

/** Every option that has a flag. */
export const FLAG_NAMES = OPTION_NAMES.filter((name) => "flag" in OPTIONS[name]);

/** Adds the flags of the named options to a command. */
export function withFlags(command: Command, names: readonly OptionName[]): Command {
  for (const name of names) {
    const declaration: Declared = OPTIONS[name];
    const value = typeof declaration.default === "boolean" ? "" : ` <${declaration.placeholder ?? "value"}>`;
    const env = declaration.env === undefined ? "" : ` [${declaration.env}]`;
    const shown = showOption(name, declaration.default);
    const fallback = value === "" || shown === UNSET ? "" : ` Default: ${shown}.`;
    const option = command.createOption(
      `--${declaration.flag}${value}`,
      `${declaration.text}${fallback}${env}`,
    );
    // for the shell's completion only: what is wrong is said by readSettings, with all the rest
    if (declaration.choices) option.argChoices = [...declaration.choices];
    command.addOption(option);
  }
  return command;
}

/** The settings of a command that reads no configuration file: its flags, then the environment, then the defaults. */
export function settingsOf(command: Command): ReturnType<typeof readSettings> {
  return readSettings({ flags: flagsOf(command), env: process.env });
}

/** The flags that were given, by the names of their options. */
export function flagsOf(command: Command): Readonly<Record<string, string | boolean | undefined>> {
  const given = command.opts<Record<string, string | boolean | undefined>>();
  const flags: Record<string, string | boolean | undefined> = {};
  for (const [name, declaration] of Object.entries(OPTIONS) as [OptionName, { flag?: string }][]) {
    if (declaration.flag !== undefined) flags[name] = given[camelCase(declaration.flag)];
  }
  return flags;
}

function camelCase(flag: string): string {
  return flag.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
