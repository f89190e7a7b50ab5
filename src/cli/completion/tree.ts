// The command line as the shells' completion needs it: read from the commands themselves, so that no list is kept by hand.
import type { Argument, Command, Option } from "commander";

/** What may stand behind a flag: nothing, a file, a folder, one of these, or anything. */
export type Value =
  | { readonly kind: "none" | "file" | "folder" | "any" }
  | { readonly kind: "choice"; readonly choices: readonly string[] };

export interface CompletedFlag {
  /** Such as `-h` and `--help`. */
  readonly names: readonly string[];
  readonly about: string;
  readonly value: Value;
}

/** A command and what may follow it. */
export interface CompletedCommand {
  /** The words that lead to it, with spaces between; "" is the program itself. */
  readonly path: string;
  readonly name: string;
  readonly about: string;
  readonly commands: readonly CompletedCommand[];
  readonly flags: readonly CompletedFlag[];
  /** Its first argument, where the values are known. */
  readonly choices: readonly string[];
}

/** The tree of a program. */
export function completedTree(program: Command): CompletedCommand {
  return complete(program, "");
}

/** Every command of a tree, the program itself first. */
export function everyCommand(tree: CompletedCommand): readonly CompletedCommand[] {
  return [tree, ...tree.commands.flatMap(everyCommand)];
}

function complete(command: Command, path: string): CompletedCommand {
  const help = command.createHelp();
  const parts = help.visibleCommands(command);
  // what is run where no part is named: its flags may follow the command at once
  const { _defaultCommandName: byDefault } = command as { _defaultCommandName?: string | null };
  const plain = parts.find((part) => part.name() === byDefault);
  const options = [...(plain ? help.visibleOptions(plain) : []), ...help.visibleOptions(command)];
  const flags = options.map(completeFlag);
  const commands = parts.map((part) => complete(part, `${path} ${part.name()}`.trim()));
  return {
    path,
    name: command.name(),
    about: command.description(),
    commands: commands.map((part) => (part.name === "help" ? aboutAll(part, commands) : part)),
    flags: flags.filter(
      (flag, index) => flags.findIndex(({ names }) => names.at(-1) === flag.names.at(-1)) === index,
    ),
    choices: choicesOf(command.registeredArguments[0]),
  };
}

/** `help` is about any other command. */
function aboutAll(help: CompletedCommand, commands: readonly CompletedCommand[]): CompletedCommand {
  return { ...help, choices: commands.map(({ name }) => name).filter((name) => name !== help.name) };
}

function completeFlag(option: Option): CompletedFlag {
  const names = [option.short, option.long].filter((name) => name !== undefined);
  return { names, about: option.description, value: valueOf(option) };
}

function valueOf({ argChoices, flags }: Option): Value {
  const placeholder = /[<[](\w+)/.exec(flags)?.[1];
  if (placeholder === undefined) return { kind: "none" };
  if (argChoices) return { kind: "choice", choices: argChoices };
  return { kind: placeholder === "file" || placeholder === "folder" ? placeholder : "any" };
}

function choicesOf(argument: Argument | undefined): readonly string[] {
  return argument?.argChoices ?? [];
}
