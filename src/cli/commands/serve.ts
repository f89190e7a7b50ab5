// `ukemi serve`: the server, for production.
import { Command } from "commander";
import { openApplication } from "../application.ts";
import { withConfig } from "../config.ts";
import { runServer } from "../run.ts";
import { withFlags } from "../settings.ts";

/** The flags of every command that serves. */
export const SERVER_FLAGS = [
  "port",
  "host",
  "data",
  "database",
  "trustedProxies",
  "concurrency",
  "logLevel",
] as const;

export function serveCommand(): Command {
  const command = new Command("serve")
    .description("Receive webhooks, store them, work on them where there are handlers, and serve the API.")
    .option("--no-work", "Only receive: leave the jobs to `ukemi work` in other processes.");
  return withFlags(withConfig(command), [...SERVER_FLAGS, "migrate"]).action(async () => {
    const { ukemi, settings, hasHandlers } = await openApplication(command);
    if (ukemi.sources.length === 0) {
      ukemi.logger.warn(
        "no source is configured: set STRIPE_WEBHOOK_SECRET, else every webhook is answered with 404",
      );
    }
    if (settings.adminToken === undefined) {
      ukemi.logger.warn(
        "UKEMI_ADMIN_TOKEN is not set: whoever reaches this port from this machine can read events, also through a proxy that adds no headers",
      );
    }
    const works = hasHandlers && command.opts<{ work: boolean }>().work;
    await runServer(ukemi, { works, onReady: (url) => ukemi.logger.info({ url }, "ready") });
  });
}
