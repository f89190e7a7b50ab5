// Which dead letters a command means: ids as arguments, the flags of the filter, or all of them.
import type { Command } from "commander";
import type { Calls } from "../client/client.ts";
import { UkemiError } from "../errors.ts";
import { Filter } from "../server/routes/dead.ts";
import { readFields, withFields } from "./fields.ts";

/** The part of a request that says which. */
export type DeadSelection = Pick<Calls["replayDead"]["input"], "ids" | "filter" | "all">;

/** Adds the argument and the flags to a command. */
export function withSelection(command: Command): Command {
  command.argument("[ids...]", "Ids of jobs, instead of a filter.");
  return withFields(command, Filter).option("--all", "All dead letters.");
}

/** Exactly one of the three, so that nothing is changed by mistake. */
export function selectionOf(command: Command, ids: readonly string[]): DeadSelection {
  const { all } = command.opts<{ all?: true }>();
  const filter = readFields(command, Filter);
  const ways = [ids.length > 0, Object.keys(filter).length > 0, all === true].filter(Boolean).length;
  if (ways !== 1) {
    throw new UkemiError(
      "invalid_option",
      ways === 0
        ? "Say which: ids (ukemi dead list shows them), a filter such as --error-class, or --all."
        : "Give ids, or a filter, or --all: not more than one of them.",
    );
  }
  if (ids.length > 0) return { ids: ids.map(readId) };
  return all ? { all } : { filter };
}

/** The id of a job. */
function readId(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) {
    throw new UkemiError(
      "invalid_option",
      `${JSON.stringify(text.slice(0, 64))} is not the id of a job: ukemi dead list shows them. (For an event, use --event.)`,
    );
  }
  return Number(text);
}
