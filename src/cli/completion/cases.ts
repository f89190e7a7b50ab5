// What the scripts of all shells are made of: which words lead on, and which flags want a value.
import { everyCommand, type CompletedCommand, type Value } from "./tree.ts";

/** A flag of a command by one of its names. */
export interface FlagCase {
  /** The command's path, a space, the flag. */
  readonly words: string;
  readonly value: Value;
}

/** Every word that leads from one command to the next: the path before it and the word, and where they lead. */
export function steps(tree: CompletedCommand): readonly { readonly words: string; readonly path: string }[] {
  return everyCommand(tree).flatMap((command) =>
    command.commands.map((part) => ({ words: `${command.path} ${part.name}`, path: part.path })),
  );
}

/** Every flag that wants a value. */
export function valuedFlags(tree: CompletedCommand): readonly FlagCase[] {
  return everyCommand(tree).flatMap((command) =>
    command.flags
      .filter(({ value }) => value.kind !== "none")
      .flatMap(({ names, value }) => names.map((name) => ({ words: `${command.path} ${name}`, value }))),
  );
}

/** The flags that want this kind of value, as one pattern of a `case`. */
export function pattern(flags: readonly FlagCase[], kind: Value["kind"]): string {
  const found = flags.filter(({ value }) => value.kind === kind).map(({ words }) => `"${words}"`);
  return found.length === 0 ? '"(none)"' : found.join(" | ");
}

/** A text in single quotes, for shells that know no other way to write a quote in it. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** The first sentence: a menu has one line for each. */
export function brief(about: string): string {
  return /^.*?[.:](?= |$)/.exec(about)?.[0].slice(0, -1) ?? about;
}
