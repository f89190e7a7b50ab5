// `ukemi doctor`: looks at everything that a 2xx rests on, and says what to do about what is wrong.
import { Command } from "commander";
import { UkemiError } from "../../errors.ts";
import { OPTION_NAMES, OPTIONS, showOption } from "../../options.ts";
import { readConfigured, withConfig } from "../config.ts";
import { makeSecret } from "../dev-secret.ts";
import { diagnose, type Configuration, type Finding } from "../diagnose.ts";
import { EXIT } from "../exit.ts";
import { settingsOf, withFlags } from "../settings.ts";
import { table } from "../table.ts";

const MARK = { ok: "ok", warn: "warn", bad: "BAD" } as const;

export function doctorCommand(): Command {
  const command = new Command("doctor")
    .description("Check the store, durability, clocks, secrets, pooler and disk, and say what to do.")
    .option("--json", "Print JSON.");
  return withFlags(withConfig(command), ["database", "data"]).action(async () => {
    const { settings, origins, ...configuration } = await read(command);
    const findings = await diagnose(settings, configuration);
    const shown = OPTION_NAMES.map((name) => ({
      option: name,
      value: showOption(name, settings[name]),
      from: origins[name] === "env" ? (OPTIONS[name] as { env: string }).env : origins[name],
    }));
    if (command.opts<{ json?: boolean }>().json) {
      process.stdout.write(`${JSON.stringify({ findings, options: shown })}\n`);
    } else {
      process.stdout.write(`${words(findings)}\n\n${table(shown)}\n`);
    }
    if (findings.some((finding) => finding.state === "bad")) process.exitCode = EXIT.failure;
  });
}

/** A file that cannot be loaded is a finding too: the rest is then examined without it. */
async function read(command: Command): Promise<ReturnType<typeof settingsOf> & Configuration> {
  const standIn = makeSecret();
  try {
    return { ...(await readConfigured(command, standIn)), standIn };
  } catch (error) {
    if (!(error instanceof UkemiError)) throw error;
    return { ...settingsOf(command), standIn, fault: error.message };
  }
}

function words(findings: readonly Finding[]): string {
  return findings
    .map(({ state, check, found, remedy }) => {
      const line = `${MARK[state].padEnd(5)} ${check.padEnd(14)} ${found}`;
      return remedy === undefined ? line : `${line}\n${" ".repeat(21)}→ ${remedy}`;
    })
    .join("\n");
}
