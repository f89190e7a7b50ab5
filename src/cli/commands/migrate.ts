// `ukemi migrate`: brings the schema of a database up to date.
import { Command } from "commander";
import { startEmbedded } from "../../storage/embedded/embedded.ts";
import { migrateStore } from "../../storage/open.ts";
import { readConfigured, withConfig } from "../config.ts";
import { makeSecret } from "../dev-secret.ts";
import { withFlags } from "../settings.ts";

export function migrateCommand(): Command {
  const command = new Command("migrate")
    .description("Bring the database's schema up to date. Safe to run from many processes at once.")
    .option("--json", "Print JSON.");
  return withFlags(withConfig(command), ["database", "data"]).action(async () => {
    // nothing is verified here: a deployment may migrate without the secrets
    const { settings } = await readConfigured(command, makeSecret());
    const url = settings.directUrl ?? settings.database;
    const embedded = url === undefined ? await startEmbedded({ data: settings.data }) : undefined;
    try {
      const { from, to } = await migrateStore(url ?? embedded!.url);
      const text =
        from === to ? `The schema is up to date (version ${to}).` : `Migrated from version ${from} to ${to}.`;
      process.stdout.write(
        `${command.opts<{ json?: boolean }>().json ? JSON.stringify({ from, to }) : text}\n`,
      );
    } finally {
      await embedded?.stop();
    }
  });
}
