// Before anything is changed: a reason, a look at what would happen, and a yes.
import { userInfo } from "node:os";
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { UkemiError } from "../errors.ts";
import { EXIT } from "./exit.ts";
import { note, print, printJson } from "./print.ts";

/** The flags of every command that changes something. */
export interface ChangeFlags {
  readonly reason?: string;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** Adds the flags of a change to a command. */
export function withChangeFlags(command: Command): Command {
  return command
    .option("--reason <text>", "Why: kept in the audit with your name. Needed unless --dry-run.")
    .option("--dry-run", "Show what would happen, and change nothing.")
    .option("--yes", "Go ahead without asking.")
    .option("--json", "Print JSON.");
}

/** The reason that was given; a dry run needs none. */
export function reasonOf({ reason, dryRun }: ChangeFlags): string {
  if (reason !== undefined && reason.trim() !== "") return reason;
  if (dryRun) return "";
  throw new UkemiError(
    "invalid_option",
    "--reason must say why: it is kept in the audit. (--dry-run needs none.)",
  );
}

/** What a change would touch, in words and for --json. */
export interface Previewed {
  readonly preview: unknown;
  readonly words: string;
  /** The server or the database that is acted on. */
  readonly place: string;
  /** False where there is nothing to do. */
  readonly any: boolean;
  /** Such as "Replay 12 dead letters?". */
  readonly question: string;
}

/** What was done, in words and for --json. */
export interface Done {
  readonly result: unknown;
  readonly words: string;
  /** What may be done next. */
  readonly next?: string;
  /** True where something that was asked for could not be done. */
  readonly failed?: boolean;
}

/** Shows the preview, asks, acts, and says what was done. */
export async function changeWithConsent(
  flags: ChangeFlags,
  previewed: Previewed,
  act: () => Promise<Done>,
): Promise<void> {
  const { preview, place, any, question } = previewed;
  const words = `On ${place}:\n${previewed.words}`;
  // what would happen is the result only where nothing happens
  if (flags.dryRun || !any) return flags.json ? printJson({ preview }) : print(words);
  if (!flags.json) note(words);
  if (!flags.yes && !(await agrees(question))) {
    if (flags.json) printJson({ preview });
    const how = process.stdin.isTTY ? "" : " Add --yes to go ahead.";
    note(`ukemi: nothing was changed.${how}`);
    process.exitCode = EXIT.failure;
    return;
  }
  const done = await act();
  if (flags.json) printJson({ preview, result: done.result });
  else print(done.words);
  if (done.next !== undefined && !flags.json) note(done.next);
  if (done.failed) process.exitCode = EXIT.failure;
}

/** Asks a person; nobody there means no. */
async function agrees(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await new Promise<string>((resolve) => {
      asking.once("close", () => resolve("")); // Ctrl-C and Ctrl-D mean no
      void asking.question(`${question} [y/N] `).then(resolve, () => resolve(""));
    });
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    asking.close();
  }
}

/** A signal that Ctrl-C sets off: a change of many then stops after the batch that is under way. */
export function stopOnInterrupt(): { readonly signal: AbortSignal; release(): void } {
  const stop = new AbortController();
  const onInterrupt = () => stop.abort();
  process.once("SIGINT", onInterrupt);
  return { signal: stop.signal, release: () => void process.off("SIGINT", onInterrupt) };
}

/** Who runs the command, for the audit. */
export function actor(): string {
  try {
    return `cli:${userInfo().username}`;
  } catch {
    return `cli:${process.getuid?.() ?? "unknown"}`; // a container may run under a number without a name
  }
}
