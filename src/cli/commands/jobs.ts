// `ukemi jobs`: work of every state.
import { Command } from "commander";
import { listCommand } from "../list.ts";
import { showAgo } from "../moment.ts";
import { showCommand } from "../show.ts";
import { describeJob } from "../show-job.ts";

export function jobsCommand(): Command {
  return new Command("jobs")
    .description("Look at jobs of every state.")
    .addCommand(
      listCommand({
        name: "list",
        call: "listJobs",
        description: "List jobs, newest first.",
        row: (job, jobs) => ({
          id: String(job.id),
          made: showAgo(job.created_at),
          state: job.state,
          handler: job.handler,
          queue: job.queue,
          event: job.event_id ?? "",
          tries: `${job.attempts}/${job.max_attempts}`,
          ...(jobs.some(({ tenant }) => tenant !== null) ? { tenant: job.tenant ?? "" } : {}),
          error: job.error_class === null ? "" : `${job.error_class}: ${job.error_message ?? ""}`,
        }),
        table: {
          cut: ["handler", "event", "tenant", "error", "queue"],
          names: ["handler"],
          optional: ["queue", "tenant", "event"],
        },
        empty: "There are no jobs here.",
      }),
      { isDefault: true },
    )
    .addCommand(
      showCommand({
        call: "getJob",
        description: "Show one job with its event, every try, and what was done to it.",
        argument: "The job's id: ukemi jobs lists them.",
        describe: describeJob,
      }),
    );
}
