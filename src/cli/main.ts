// The terminal face: reads the command, runs it, and turns errors into words and an exit code.
import { Command, type Argument } from "commander";
import { UkemiError } from "../errors.ts";
import { VERSION } from "../version.ts";
import { auditCommand } from "./commands/audit.ts";
import { bodiesCommand } from "./commands/bodies.ts";
import { completionCommand } from "./commands/completion.ts";
import { deadCommand } from "./commands/dead.ts";
import { destinationsCommand } from "./commands/destinations.ts";
import { devCommand } from "./commands/dev.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { effectsCommand } from "./commands/effects.ts";
import { eventsCommand } from "./commands/events.ts";
import { handlersCommand } from "./commands/handlers.ts";
import { initCommand } from "./commands/init.ts";
import { jobsCommand } from "./commands/jobs.ts";
import { migrateCommand } from "./commands/migrate.ts";
import { operationsCommand } from "./commands/operations.ts";
import { pruneCommand } from "./commands/prune.ts";
import { queuesCommand } from "./commands/queues.ts";
import { rejectionsCommand } from "./commands/rejections.ts";
import { sendCommand } from "./commands/send.ts";
import { serveCommand } from "./commands/serve.ts";
import { statsCommand } from "./commands/stats.ts";
import { suppressionsCommand } from "./commands/suppressions.ts";
import { tokenCommand } from "./commands/token.ts";
import { usageCommand } from "./commands/usage.ts";
import { workCommand } from "./commands/work.ts";
import { workersCommand } from "./commands/workers.ts";
import { EXIT } from "./exit.ts";
import { note } from "./print.ts";

/** The commands as a newcomer meets them. */
const GROUPS: readonly (readonly [string, readonly ((program: Command) => Command)[]])[] = [
  ["Begin:", [initCommand, devCommand, sendCommand]],
  ["Run:", [serveCommand, workCommand, migrateCommand, usageCommand]],
  [
    "See:",
    [
      doctorCommand,
      eventsCommand,
      jobsCommand,
      effectsCommand,
      workersCommand,
      handlersCommand,
      rejectionsCommand,
      statsCommand,
      auditCommand,
    ],
  ],
  ["Mend:", [deadCommand, operationsCommand, queuesCommand, destinationsCommand, suppressionsCommand]],
  ["More:", [pruneCommand, bodiesCommand, tokenCommand, completionCommand]],
];

const FIRST_STEPS = `
In a new project: ukemi init, then ukemi dev; in another terminal, ukemi send.
ukemi help <command> says more about each of them.
`;

/** The whole command line; the reference page is made from it. */
export function createProgram(): Command {
  const program = new Command("ukemi")
    .usage("<command> [flags]")
    .description("Receives payment webhooks so that nothing is lost and nothing happens twice.")
    .version(VERSION, "-v, --version", "Print the version.")
    .helpOption("-h, --help", "Show this help.")
    .addHelpText("after", FIRST_STEPS)
    .showSuggestionAfterError()
    .showHelpAfterError("(ukemi --help lists the commands)");
  for (const [heading, commands] of GROUPS) {
    program.commandsGroup(heading);
    for (const command of commands) program.addCommand(prepare(command(program)));
  }
  program.helpCommand("help [command]", "Show this help, or that of a command.");
  return withOurVoice(program).exitOverride();
}

/** What every command has in common, and those below it. */
function prepare(command: Command): Command {
  withOurVoice(command).helpOption("-h, --help", "Show this help.").helpCommand(false).exitOverride();
  for (const part of command.commands) prepare(part);
  return command;
}

/** Faults begin with our name, as all of them do; and a list of commands is no place for their flags. */
function withOurVoice(command: Command): Command {
  return command
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "ukemi: ")) })
    .configureHelp({
      subcommandTerm: (part) =>
        [part.name(), ...part.registeredArguments.map((argument) => humanReadable(argument))].join(" "),
    });
}

function humanReadable(argument: Argument): string {
  return argument.required ? `<${argument.name()}>` : `[${argument.name()}]`;
}

function report(error: unknown): number {
  if (error instanceof UkemiError) {
    // a wrong option's message says already what is expected
    const isUsage = error.code === "invalid_option" || error.code === "invalid_parameter";
    const message = error.message.replaceAll("\n", "\n       ");
    note(`ukemi: ${message}${isUsage ? "" : `\n       ${error.remedy}`}`);
    return isUsage ? EXIT.usage : EXIT.failure;
  }
  // commander has printed its own message, or the help that was asked for
  if (error instanceof Error && "exitCode" in error) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  process.stderr.write(`ukemi: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return EXIT.failure;
}

/** Without a command there is one thing to show. `help` is for parts of a command too, and not for commands that are none. */
function askedFor(program: Command, argv: readonly string[]): string[] {
  const words = argv[0] === "help" ? argv.slice(1) : argv;
  const [first] = words;
  if (first === undefined) return ["--help"];
  const isKnown = first.startsWith("-") || program.commands.some((command) => command.name() === first);
  if (!isKnown) return [first]; // which is then said, with a suggestion
  return words === argv ? [...argv] : [...words, "--help"];
}

/** Runs the command line; resolves with the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  try {
    const program = createProgram();
    await program.parseAsync(askedFor(program, argv), { from: "user" });
    return Number(process.exitCode ?? EXIT.ok);
  } catch (error) {
    return report(error);
  }
}
