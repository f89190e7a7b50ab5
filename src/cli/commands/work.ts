// `ukemi work`: works on the jobs of the configured handlers, in a process of its own.
import { Command } from "commander";
import { UkemiError } from "../../errors.ts";
import { openApplication } from "../application.ts";
import { withConfig } from "../config.ts";
import { runWorker } from "../run.ts";
import { withFlags } from "../settings.ts";

export function workCommand(): Command {
  const command = new Command("work").description(
    "Work on jobs with the handlers of the configuration file, without receiving anything.",
  );
  return withFlags(withConfig(command), [
    "data",
    "database",
    "concurrency",
    "logLevel",
    "migrate",
    "metricsPort",
    "host",
  ]).action(async () => {
    const { ukemi, hasHandlers } = await openApplication(command);
    if (!hasHandlers) {
      throw new UkemiError(
        "invalid_option",
        "There are no handlers to work for: write them into ukemi.config.ts (handlers: (ukemi) => { ukemi.on(…) }), or pass --config.",
      );
    }
    await runWorker(ukemi, (url) => ukemi.logger.info({ url }, "ready"));
  });
}
