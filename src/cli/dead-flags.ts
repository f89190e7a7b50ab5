// Which dead letters a command means: the flags of the filter, and ids as arguments.
import type { Command } from "commander";
import { UkemiError } from "../errors.ts";
import type { Selection } from "../operate/selection.ts";
import type { DeadFilter } from "../storage/dead-filter.ts";
import { readMoment } from "./moment.ts";

/** The flags that narrow a command to some dead letters. */
export interface DeadFlags {
  readonly handler?: string;
  readonly queue?: string;
  readonly type?: string;
  readonly source?: string;
  readonly tenant?: string;
  readonly ref?: string;
  readonly event?: string;
  readonly errorClass?: string;
  readonly death?: string;
  readonly since?: string;
  readonly until?: string;
}

/** Adds the flags to a command. */
export function withDeadFlags(command: Command): Command {
  return command
    .option("--handler <name>", "Only those of this handler or task.")
    .option("--queue <name>", "Only those of this queue.")
    .option("--type <type>", "Only those about events of this type.")
    .option("--source <name>", "Only those about events of this source.")
    .option("--tenant <name>", "Only those of this tenant.")
    .option("--ref <id>", "Only those about events with this business id, such as pi_….")
    .option("--event <id>", "Only those of this event, by the sender's id or ours.")
    .option("--error-class <name>", "Only those that died of this error.")
    .option("--death <way>", "Only those that died so: exhausted, terminal, crashed or overdue.")
    .option("--since <time>", "Only those that died since: 2026-11-15T09:00:00Z, or 90m, 2h, 3d ago.")
    .option("--until <time>", "Only those that died before.");
}

/** The filter that the flags come to. */
export function deadFilterOf(flags: DeadFlags): DeadFilter {
  const { since, until, handler, queue, type, source, tenant, ref, event, errorClass, death } = flags;
  const texts = { handler, queue, type, source, tenant, ref, event, errorClass, death };
  return {
    ...Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== undefined)),
    ...(since === undefined ? {} : { since: readMoment("--since", since) }),
    ...(until === undefined ? {} : { until: readMoment("--until", until) }),
  };
}

/** What is to be changed: ids, or a filter, or all. Exactly one of them, so that nothing is changed by mistake. */
export function selectionOf(
  ids: readonly string[],
  flags: DeadFlags & { readonly all?: boolean },
): Selection {
  const filter = deadFilterOf(flags);
  const ways = [ids.length > 0, Object.keys(filter).length > 0, flags.all === true].filter(Boolean).length;
  if (ways !== 1) {
    throw new UkemiError(
      "invalid_option",
      ways === 0
        ? "Say which: ids (ukemi dead list shows them), a filter such as --error-class, or --all."
        : "Give ids, or a filter, or --all: not more than one of them.",
    );
  }
  if (ids.length > 0) return { ids: ids.map(readId) };
  return flags.all ? { all: true } : { filter };
}

/** The id of a job. */
export function readId(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) {
    throw new UkemiError(
      "invalid_option",
      `${JSON.stringify(text.slice(0, 64))} is not the id of a job: ukemi dead list shows them. (For an event, use --event.)`,
    );
  }
  return Number(text);
}
