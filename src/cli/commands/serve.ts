// `ukemi serve`: the server, for production.
import { Command } from "commander";
import { stripe } from "../../sources/stripe.ts";
import type { Source } from "../../sources/source.ts";
import type { Settings } from "../../options.ts";
import { createUkemi } from "../../ukemi.ts";
import { runServer } from "../run.ts";
import { settingsOf, withFlags } from "../settings.ts";

/** The flags of every command that serves. */
export const SERVER_FLAGS = ["port", "host", "data", "database", "trustedProxies", "logLevel"] as const;

export function serveCommand(): Command {
  const command = new Command("serve").description("Receive webhooks, store them, and serve the API.");
  return withFlags(command, [...SERVER_FLAGS, "migrate"]).action(async () => {
    const { settings } = settingsOf(command);
    const ukemi = createUkemi({ ...settings, sources: sourcesOf(settings) });
    if (settings.stripeSecrets.length === 0) {
      ukemi.logger.warn(
        "no source is configured: set STRIPE_WEBHOOK_SECRET, else every webhook is answered with 404",
      );
    }
    if (settings.adminToken === undefined) {
      ukemi.logger.warn(
        "UKEMI_ADMIN_TOKEN is not set: whoever reaches this port from this machine can read events, also through a proxy that adds no headers",
      );
    }
    await runServer(ukemi, (url) => ukemi.logger.info({ url }, "ready"));
  });
}

/** The sources that need no configuration file. */
export function sourcesOf(settings: Settings): Record<string, Source> {
  return settings.stripeSecrets.length === 0 ? {} : { stripe: stripe({ secrets: settings.stripeSecrets }) };
}
