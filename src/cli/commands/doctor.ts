// `ukemi doctor`: shows the configuration in force, looks at everything that a 2xx rests on, and says what is wrong.
import { Command } from "commander";
import { OPTION_NAMES, OPTIONS, showOption, type OptionName } from "../../options.ts";
import { examineConfigured, withConfig, type Configured } from "../config.ts";
import { makeSecret } from "../dev-secret.ts";
import { diagnose, type Finding } from "../diagnose.ts";
import { EXIT } from "../exit.ts";
import { FLAG_NAMES, withFlags } from "../settings.ts";
import { table } from "../table.ts";
import { strayVariables } from "../variables.ts";
import { wrap } from "../width.ts";

const MARK = { ok: "ok", warn: "warn", bad: "BAD" } as const;

export function doctorCommand(): Command {
  const command = new Command("doctor")
    .description("Show the configuration in force, check all that it leads to, and say what to do.")
    .option("--json", "Print JSON.");
  return withFlags(withConfig(command), FLAG_NAMES).action(async () => {
    const standIn = makeSecret();
    const { faults, ...configured } = await examineConfigured(command, standIn);
    const strays = strayVariables(process.env);
    const { settings, config, file } = configured;
    const findings = await diagnose(settings, { config, standIn, faults, strays });
    const options = OPTION_NAMES.map((name) => shown(name, configured));
    process.stdout.write(
      command.opts<{ json?: boolean }>().json
        ? `${JSON.stringify({ file: file ?? null, options, findings })}\n`
        : `${optionWords(options)}\n\n${findingWords(findings)}\n`,
    );
    if (findings.some((finding) => finding.state === "bad")) process.exitCode = EXIT.failure;
    if (faults.length > 0) process.exitCode = EXIT.usage;
  });
}

interface ShownOption {
  readonly option: OptionName;
  readonly value: string;
  /** The flag, the variable or the file; "default" where none of them says anything. */
  readonly from: string;
  readonly changed: boolean;
}

function shown(name: OptionName, { settings, origins, file }: Configured): ShownOption {
  const { flag, env } = OPTIONS[name] as { readonly flag?: string; readonly env?: string };
  const from = { flag: `--${flag}`, env: env!, config: file ?? "", default: "default" }[origins[name]];
  return { option: name, value: showOption(name, settings[name]), from, changed: from !== "default" };
}

/** What somebody has set comes first; the rest follows. */
function optionWords(options: readonly ShownOption[]): string {
  const rows = options
    .toSorted((left, right) => Number(right.changed) - Number(left.changed))
    .map(({ option, value, from }) => ({ option, value, from }));
  return table(rows, { width: process.stdout.columns, cut: ["value", "from"], names: ["value", "from"] });
}

const INDENT = 21;

function findingWords(findings: readonly Finding[]): string {
  const room = (process.stdout.columns ?? Number.POSITIVE_INFINITY) - INDENT;
  return findings
    .flatMap(({ state, check, found, remedy }) => {
      const head = `${MARK[state].padEnd(5)} ${check.padEnd(14)} `;
      const lines = [...wrap(found, room), ...(remedy === undefined ? [] : wrap(`→ ${remedy}`, room))];
      return lines.map((line, index) => `${index === 0 ? head : " ".repeat(INDENT)}${line}`);
    })
    .join("\n");
}
