// What a command says: the result to standard output, notes beside it to standard error, both folded to the terminal.
import { fold } from "./width.ts";

/** The result, for a person. */
export function print(text: string): void {
  process.stdout.write(`${fold(text, process.stdout.columns)}\n`);
}

/** The result, for a script. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** What a person should know beside the result; a script that takes the result does not get it. */
export function note(text: string): void {
  process.stderr.write(`${fold(text, process.stderr.columns)}\n`);
}
