// `ukemi doctor`: looks at everything that a 2xx rests on, and says what to do about what is wrong.
import { Command } from "commander";
import { OPTION_NAMES, OPTIONS, showOption } from "../../options.ts";
import { diagnose, type Finding } from "../diagnose.ts";
import { EXIT } from "../exit.ts";
import { settingsOf, withFlags } from "../settings.ts";
import { table } from "../table.ts";

const MARK = { ok: "ok", warn: "warn", bad: "BAD" } as const;

export function doctorCommand(): Command {
  const command = new Command("doctor")
    .description("Check the store, durability, clocks, secrets, pooler and disk, and say what to do.")
    .option("--json", "Print JSON.");
  return withFlags(command, ["database", "data"]).action(async () => {
    const { settings, origins } = settingsOf(command);
    const findings = await diagnose(settings);
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

function words(findings: readonly Finding[]): string {
  return findings
    .map(({ state, check, found, remedy }) => {
      const line = `${MARK[state].padEnd(5)} ${check.padEnd(14)} ${found}`;
      return remedy === undefined ? line : `${line}\n${" ".repeat(21)}→ ${remedy}`;
    })
    .join("\n");
}
