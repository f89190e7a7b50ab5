// Commands that show one thing: an id, words for a person, --json for a script.
import { Command } from "commander";
import type { Calls } from "../client/client.ts";
import { print, printJson } from "./print.ts";
import { requireOurs } from "./answers.ts";
import { withApi, withTarget } from "./target.ts";

/** The calls that take an id and give a thing. */
type ShowCall = {
  [Id in keyof Calls]: Calls[Id]["input"] extends { readonly id: string }
    ? Calls[Id]["output"] extends Uint8Array
      ? never
      : Id
    : never;
}[keyof Calls];

export interface Showing<Id extends ShowCall> {
  readonly call: Id;
  readonly description: string;
  /** What the id is, and where to find one. */
  readonly argument: string;
  readonly describe: (thing: Calls[Id]["output"]) => string;
  /** True where keys or limits of the configuration file are needed. */
  readonly readsFile?: boolean;
}

/** Makes the command `show <id>`. */
export function showCommand<Id extends ShowCall>(showing: Showing<Id>): Command {
  const command = new Command("show")
    .description(showing.description)
    .argument("<id>", showing.argument)
    .option("--json", "Print the API's answer as JSON, on one line.");
  return withTarget(command).action(async (id: string) => {
    const thing = await withApi(
      command,
      (api) => {
        const call = api[showing.call] as (input: { id: string }) => Promise<Calls[Id]["output"]>;
        return call({ id });
      },
      { readsFile: showing.readsFile ?? false },
    );
    requireOurs(thing, "id");
    const { json } = command.opts<{ json?: boolean }>();
    if (json) printJson(thing);
    else print(showing.describe(thing));
  });
}
