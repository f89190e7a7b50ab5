// `ukemi dead`: dead letters, why they died, and what becomes of them.
import { Command } from "commander";
import { UkemiError } from "../../errors.ts";
import type { DeadGroup, DeadLetter } from "../../storage/dead-letters.ts";
import { withConfig } from "../config.ts";
import { deadFilterOf, readId, withDeadFlags, type DeadFlags } from "../dead-flags.ts";
import { showAgo } from "../moment.ts";
import { withOperate } from "../operator.ts";
import { withFlags } from "../settings.ts";
import { describeJob } from "../show-job.ts";
import { table } from "../table.ts";
import { changeDeadCommand } from "./dead-change.ts";

type ListFlags = DeadFlags & { readonly limit?: string; readonly cursor?: string; readonly json?: boolean };

export function deadCommand(): Command {
  return new Command("dead")
    .description("Look at jobs that gave up, find the cause, and replay or drop them.")
    .addCommand(listCommand())
    .addCommand(groupsCommand())
    .addCommand(showCommand())
    .addCommand(changeDeadCommand("replay", "Put dead letters back to work, with a fresh set of attempts."))
    .addCommand(changeDeadCommand("drop", "Give dead letters up for good."));
}

function listCommand(): Command {
  const command = withDeadFlags(new Command("list").description("List dead letters, newest first."))
    .option("--limit <count>", "How many, from 1 to 200.", "50")
    .option("--cursor <cursor>", "Where the page before ended.")
    .option("--json", "Print JSON.");
  return withFlags(withConfig(command), ["database", "data"]).action(async () => {
    const { limit, cursor, json, ...flags } = command.opts<ListFlags>();
    const filter = deadFilterOf(flags);
    const page = await withOperate(command, ({ dead }) =>
      dead.list(filter, { limit: Number(limit), cursor }),
    );
    if (json) return void process.stdout.write(`${JSON.stringify(page)}\n`);
    const more = page.cursor === undefined ? "" : `\nThere are more: add --cursor ${page.cursor}\n`;
    process.stdout.write(`${listed(page.items)}\n${more}`);
  });
}

function listed(items: readonly DeadLetter[]): string {
  if (items.length === 0) return "There are no dead letters here.";
  const rows = items.map((item) => ({
    id: String(item.id),
    died: showAgo(item.died_at),
    death: item.death ?? "",
    handler: item.handler,
    event: item.event_id ?? "",
    type: item.type ?? "",
    ...(items.some(({ tenant }) => tenant !== null) ? { tenant: item.tenant ?? "" } : {}),
    error: `${item.error_class ?? "unknown"}: ${item.error_message ?? ""}`,
  }));
  return table(rows, {
    width: process.stdout.columns,
    cut: ["handler", "event", "type", "tenant", "error"],
    names: ["handler"],
    optional: ["type", "death"],
  });
}

function groupsCommand(): Command {
  const command = withDeadFlags(
    new Command("groups").description(
      "Group dead letters by error class and handler, the largest group first.",
    ),
  ).option("--json", "Print JSON.");
  return withFlags(withConfig(command), ["database", "data"]).action(async () => {
    const { json, ...flags } = command.opts<ListFlags>();
    const filter = deadFilterOf(flags);
    const groups = await withOperate(command, ({ dead }) => dead.groups(filter));
    process.stdout.write(`${json ? JSON.stringify({ items: groups }) : grouped(groups)}\n`);
  });
}

function grouped(groups: readonly DeadGroup[]): string {
  if (groups.length === 0) return "There are no dead letters here.";
  const rows = groups.map((group) => ({
    count: String(group.count),
    error: group.error_class ?? "unknown",
    handler: group.handler,
    oldest: showAgo(group.oldest_at),
    newest: showAgo(group.newest_at),
    sample: `${group.sample_id}: ${group.sample_message ?? ""}`,
  }));
  return table(rows, {
    width: process.stdout.columns,
    cut: ["error", "handler", "sample"],
    names: ["handler"],
  });
}

function showCommand(): Command {
  const command = new Command("show")
    .description("Show one job with its event, every try, and what was done to it.")
    .argument("<id>", "The job's id.")
    .option("--json", "Print JSON.");
  return withFlags(withConfig(command), ["database", "data"]).action(async (text: string) => {
    const id = readId(text);
    const job = await withOperate(command, ({ dead }) => dead.show(id));
    if (!job) {
      const remedy = "ukemi dead list shows the dead ones.";
      throw new UkemiError("not_found", `There is no job ${id}.`, { remedy });
    }
    process.stdout.write(`${command.opts<ListFlags>().json ? JSON.stringify(job) : describeJob(job)}\n`);
  });
}
