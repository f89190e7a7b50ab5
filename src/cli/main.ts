// The terminal face: reads the command, runs it, and turns errors into words and an exit code.
import { Command } from "commander";
import { UkemiError } from "../errors.ts";
import { VERSION } from "../version.ts";
import { deadCommand } from "./commands/dead.ts";
import { devCommand } from "./commands/dev.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { eventsCommand } from "./commands/events.ts";
import { handlersCommand } from "./commands/handlers.ts";
import { initCommand } from "./commands/init.ts";
import { migrateCommand } from "./commands/migrate.ts";
import { queuesCommand } from "./commands/queues.ts";
import { sendCommand } from "./commands/send.ts";
import { serveCommand } from "./commands/serve.ts";
import { workCommand } from "./commands/work.ts";
import { EXIT } from "./exit.ts";

/** The whole command line; the reference page is made from it. */
export function createProgram(): Command {
  const program = new Command("ukemi")
    .description("Receives payment webhooks so that nothing is lost and nothing happens twice.")
    .version(VERSION, "-v, --version", "Print the version.")
    .helpOption("-h, --help", "Show this help.")
    .helpCommand(false)
    .showSuggestionAfterError()
    .showHelpAfterError("(ukemi --help lists the commands)");
  const commands = [
    initCommand,
    devCommand,
    serveCommand,
    workCommand,
    migrateCommand,
    doctorCommand,
    sendCommand,
    deadCommand,
    eventsCommand,
    queuesCommand,
    handlersCommand,
  ];
  for (const command of commands) program.addCommand(prepare(command()));
  return program.exitOverride();
}

/** What every command has in common, and those below it. */
function prepare(command: Command): Command {
  command.helpOption("-h, --help", "Show this help.").helpCommand(false).exitOverride();
  for (const part of command.commands) prepare(part);
  return command;
}

function report(error: unknown): number {
  if (error instanceof UkemiError) {
    // a wrong option's message says already what is expected
    const isUsage = error.code === "invalid_option";
    const message = error.message.replaceAll("\n", "\n       ");
    process.stderr.write(`ukemi: ${message}\n${isUsage ? "" : `       ${error.remedy}\n`}`);
    return isUsage ? EXIT.usage : EXIT.failure;
  }
  // commander has printed its own message, or the help that was asked for
  if (error instanceof Error && "exitCode" in error) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  process.stderr.write(`ukemi: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return EXIT.failure;
}

/** Runs the command line; resolves with the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync([...argv], { from: "user" });
    return Number(process.exitCode ?? EXIT.ok);
  } catch (error) {
    return report(error);
  }
}
