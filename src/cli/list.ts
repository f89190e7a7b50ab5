// Commands that list: flags from the route, a table that fits the terminal, --json, and --watch.
import { Command } from "commander";
import { UkemiError } from "../errors.ts";
import type { CallOptions, Calls, Client } from "../client/client.ts";
import { LIMIT_DEFAULT } from "../operate/page.ts";
import { didYouMean } from "../suggest.ts";
import { queryOf, readFields, withFields, type FieldValue } from "./fields.ts";
import { print, printJson } from "./print.ts";
import { table, type TableOptions } from "./table.ts";
import { requireOurs } from "./answers.ts";
import { withApi, withTarget } from "./target.ts";
import { watchFor } from "./watch.ts";

/** The calls that give a list. */
type ListCall = {
  [Id in keyof Calls]: Calls[Id]["output"] extends { readonly items: readonly unknown[] } ? Id : never;
}[keyof Calls];

type Item<Id extends ListCall> = Calls[Id]["output"]["items"][number];

/** A list as a command shows it. */
export interface Listing<Id extends ListCall> {
  readonly name: string;
  readonly call: Id;
  readonly description: string;
  /** One row for each item; the keys are the columns. */
  readonly row: (item: Item<Id>, items: readonly Item<Id>[]) => Readonly<Record<string, string>>;
  readonly table?: Omit<TableOptions, "width">;
  /** What is said where there is nothing. */
  readonly empty: string;
  /** What is said in place of the table; undefined where the table is better. */
  readonly words?: (items: readonly Item<Id>[], input: ListInput) => string | undefined;
  /** What is said below the table, or in place of it. */
  readonly below?: (items: readonly Item<Id>[], page: Calls[Id]["output"]) => string;
  /** True where keys or limits of the configuration file are needed. */
  readonly readsFile?: boolean;
  /** A part of the path, given as an argument. */
  readonly argument?: { readonly name: string; readonly description: string };
}

interface ListFlags {
  readonly json?: boolean;
  readonly watch?: string | boolean;
}

type ListInput = Readonly<Record<string, FieldValue>>;

/** A page of any list. */
interface AnyPage {
  readonly items: readonly unknown[];
  readonly cursor?: string;
}

const WATCH_SECONDS = 2;

/** Makes the command. */
export function listCommand<Id extends ListCall>(listing: Listing<Id>): Command {
  const command = new Command(listing.name).description(listing.description);
  const schema = queryOf(listing.call);
  const { argument } = listing;
  if (argument) command.argument(`<${argument.name}>`, argument.description);
  if (schema) withFields(command, schema);
  command
    .option("--json", "Print the API's answer as JSON, on one line.")
    .option(
      "--watch [seconds]",
      `Show it again every so many seconds, until Ctrl-C. Default: ${WATCH_SECONDS}.`,
    );
  // the list is what `ukemi jobs` alone means: whatever follows was meant to be another command
  if (!argument) command.allowExcessArguments(true);
  return withTarget(command).action(async () => {
    if (!argument) refuseArguments(command);
    const input = {
      ...(schema ? readFields(command, schema) : {}),
      ...(argument ? { [argument.name]: command.args[0]! } : {}),
    };
    const { json, watch } = command.opts<ListFlags>();
    const everyMs = watch === undefined ? undefined : readSeconds(watch) * 1000;
    const work = async (api: Client) => {
      if (everyMs !== undefined) {
        const title = `ukemi ${command.parent?.name() ?? ""} ${listing.name}`;
        const show = (page: Calls[Id]["output"]) =>
          (json ? JSON.stringify(page) : shown(listing, page, input)) + "\n";
        const ask = (signal: AbortSignal) => askOnce<Id>(api, listing.call, input, { signal });
        return watchFor({ title, ask, show }, everyMs, process.stdout.isTTY && !json);
      }
      const page = await askFull<Id>(api, listing.call, input);
      if (json) printJson(page);
      else print(shown(listing, page, input));
    };
    await withApi(command, work, { readsFile: listing.readsFile ?? false });
  });
}

async function askOnce<Id extends ListCall>(
  api: Client,
  call: Id,
  input: ListInput,
  options: CallOptions = {},
): Promise<Calls[Id]["output"]> {
  const ask = api[call] as (input: ListInput, options: CallOptions) => Promise<Calls[Id]["output"]>;
  return requireOurs(await ask(input, options), "items");
}

/** A page as full as it was asked for: on a large table one answer looks through a part of it only. */
async function askFull<Id extends ListCall>(
  api: Client,
  call: Id,
  input: ListInput,
): Promise<Calls[Id]["output"]> {
  const ask = async (given: ListInput) => (await askOnce<Id>(api, call, given)) as AnyPage;
  const limit = Number(input.limit ?? LIMIT_DEFAULT);
  let page = await ask(input);
  while (page.cursor !== undefined && page.items.length < limit) {
    const next = await ask({ ...input, cursor: page.cursor, limit: limit - page.items.length });
    page = { ...next, items: [...page.items, ...next.items] };
  }
  return page as Calls[Id]["output"];
}

function refuseArguments({ args, parent }: Command): void {
  if (args.length === 0) return;
  const known = parent?.commands.map((part) => part.name()) ?? [];
  throw new UkemiError(
    "invalid_option",
    `unknown command ukemi ${parent?.name() ?? ""} ${args[0]} (there is ${known.join(", ")})${didYouMean(args[0]!, known)}`,
  );
}

function readSeconds(given: string | boolean): number {
  const seconds = given === true ? WATCH_SECONDS : Number(given);
  if (seconds >= 0.2 && seconds <= 3600) return seconds;
  throw new UkemiError("invalid_option", "--watch must be a number of seconds from 0.2 to 3600.");
}

/** The table of a page, with how to see more. */
export function shown<Id extends ListCall>(
  listing: Listing<Id>,
  page: Calls[Id]["output"],
  input: ListInput = {},
): string {
  const items = page.items as readonly Item<Id>[];
  const cursor = "cursor" in page ? page.cursor : undefined;
  const below = listing.below?.(items, page) ?? "";
  return [
    items.length === 0 ? listing.empty : (listing.words?.(items, input) ?? tableOf(listing, items)),
    ...(below === "" ? [] : ["", below]),
    ...(cursor === undefined ? [] : ["", `There are more: add --cursor ${cursor}`]),
  ].join("\n");
}

function tableOf<Id extends ListCall>(listing: Listing<Id>, items: readonly Item<Id>[]): string {
  const rows = items.map((item) => listing.row(item, items));
  return table(rows, { width: process.stdout.columns, ...listing.table });
}
