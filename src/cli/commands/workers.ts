// `ukemi workers`: who does the work, and what each has in hand.
import { Command } from "commander";
import { listCommand } from "../list.ts";
import { showAgo } from "../moment.ts";

export function workersCommand(): Command {
  return new Command("workers").description("See who does the work.").addCommand(
    listCommand({
      name: "list",
      call: "listWorkers",
      description: "List the workers that live, with what each has in hand.",
      row: (worker) => ({
        worker: `${worker.host}/${worker.pid}`,
        state: worker.state === "missing" ? "MISSING" : worker.state,
        running: String(worker.running),
        queues: worker.queues.join(", "),
        handlers: worker.handlers.join(", "),
        version: worker.version,
        since: showAgo(worker.started_at),
        seen: showAgo(worker.ended_at ?? worker.seen_at),
        id: worker.id,
      }),
      table: { cut: ["worker", "queues", "handlers"], optional: ["id", "version", "seen", "queues"] },
      empty: "No worker lives: start one with ukemi serve or ukemi work.",
      below: (workers) =>
        workers.some(({ state }) => state === "missing")
          ? "Missing: it has not said goodbye and is not heard of. Another worker takes its jobs over."
          : "",
    }),
    { isDefault: true },
  );
}
