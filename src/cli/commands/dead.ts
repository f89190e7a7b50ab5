// `ukemi dead`: dead letters, why they died, and what becomes of them.
import { Command } from "commander";
import { listCommand } from "../list.ts";
import { showAgo } from "../moment.ts";
import { showCommand } from "../show.ts";
import { describeJob } from "../show-job.ts";
import { changeDeadCommand } from "./dead-change.ts";

export function deadCommand(): Command {
  return new Command("dead")
    .description("Look at jobs that gave up, find the cause, and replay or drop them.")
    .addCommand(
      listCommand({
        name: "list",
        call: "listDead",
        description: "List dead letters, newest first.",
        row: (item, items) => ({
          id: String(item.id),
          died: showAgo(item.died_at),
          death: item.death ?? "",
          handler: item.handler,
          event: item.event_id ?? "",
          type: item.type ?? "",
          ...(items.some(({ tenant }) => tenant !== null) ? { tenant: item.tenant ?? "" } : {}),
          error: `${item.error_class ?? "unknown"}: ${item.error_message ?? ""}`,
        }),
        table: {
          cut: ["handler", "event", "type", "tenant", "error"],
          names: ["handler"],
          optional: ["type", "death", "tenant", "event"],
        },
        empty: "There are no dead letters here.",
      }),
      { isDefault: true },
    )
    .addCommand(
      listCommand({
        name: "groups",
        call: "groupDead",
        description: "Group dead letters by error class and handler, the largest group first.",
        row: (group) => ({
          count: String(group.count),
          error: group.error_class ?? "unknown",
          handler: group.handler,
          oldest: showAgo(group.oldest_at),
          newest: showAgo(group.newest_at),
          sample: `${group.sample_id}: ${group.sample_message ?? ""}`,
        }),
        table: { cut: ["error", "handler", "sample"], names: ["handler"], optional: ["oldest"] },
        empty: "There are no dead letters here.",
      }),
    )
    .addCommand(
      showCommand({
        call: "getDead",
        description: "Show one job with its event, every try, and what was done to it.",
        argument: "The job's id: ukemi dead lists them.",
        describe: describeJob,
      }),
    )
    .addCommand(changeDeadCommand("replay", "Put dead letters back to work, with a fresh set of attempts."))
    .addCommand(changeDeadCommand("drop", "Give dead letters up for good."));
}
