// `ukemi dev`: everything on this machine with nothing to set up. This is what `npm start` runs.
import { Command } from "commander";
import { DEFAULTS } from "../../options.ts";
import { openApplication, type Adjust } from "../application.ts";
import { withConfig } from "../config.ts";
import { keepDevSecret, makeSecret, readDevSecret } from "../dev-secret.ts";
import { runServer } from "../run.ts";
import { settingsOf, withFlags } from "../settings.ts";
import { SERVER_FLAGS } from "./serve.ts";

export function devCommand(): Command {
  const command = new Command("dev").description("Run everything on this machine, with nothing to set up.");
  return withFlags(withConfig(command), SERVER_FLAGS).action(async () => {
    const secret = (await readDevSecret(settingsOf(command).settings.data)) ?? makeSecret();
    const adjust: Adjust = async (given, origins) => {
      if (given.stripeSecrets.length === 0) await keepDevSecret(given.data, secret);
      return {
        ...given,
        stripeSecrets: given.stripeSecrets.length > 0 ? given.stripeSecrets : [secret],
        migrate: true,
        // a newcomer reads the greeting, not JSON lines; what goes wrong is still shown
        logLevel: origins.logLevel === "default" ? ("warn" as const) : given.logLevel,
      };
    };
    const { ukemi, settings, hasHandlers } = await openApplication(command, adjust, secret);
    await runServer(ukemi, {
      works: hasHandlers,
      onReady: (url) => process.stdout.write(greeting(url, settings.database === undefined, settings.data)),
    });
    process.stdout.write("\nStopped. The data is kept for the next start.\n");
  });
}

function greeting(url: string, embedded: boolean, data: string): string {
  const store = embedded ? `embedded PostgreSQL in ${data}` : "the PostgreSQL of DATABASE_URL";
  // from a clone the command is `npm run send`; installed as a package it is `npx ukemi send`
  const fromClone = process.env.npm_lifecycle_event === "start";
  const flags = [
    ...(url.endsWith(`:${DEFAULTS.port}`) ? [] : ["--url", url]),
    ...(data === DEFAULTS.data ? [] : ["--data", data]),
  ];
  const send = [
    fromClone ? "npm run send" : "npx ukemi send",
    ...(fromClone && flags.length > 0 ? ["--"] : []),
    ...flags,
  ];
  return `
  Ukemi is ready.

    Webhooks   POST ${url}/webhooks/stripe
    API        GET  ${url}/api/v1/events
    Health          ${url}/readyz
    Metrics         ${url}/metrics
    Store           ${store}

  Send a correctly signed test event and see what became of it (in another terminal):

    ${send.join(" ")}

  Ctrl-C stops everything.
`;
}
