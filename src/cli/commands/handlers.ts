// `ukemi handlers`: who wants which events, who offers to run them, and whose jobs nobody runs.
import { Command } from "commander";
import { UkemiError } from "../../errors.ts";
import type { ListedHandler } from "../../storage/handlers.ts";
import { INLINE } from "../../work/handler.ts";
import { withConfig } from "../config.ts";
import { changeWithConsent, reasonOf, withChangeFlags, type ChangeFlags } from "../consent.ts";
import { actor, withOperate } from "../operator.ts";
import { withFlags } from "../settings.ts";
import { table } from "../table.ts";

export function handlersCommand(): Command {
  return new Command("handlers")
    .description("See who wants which events, and whose jobs nobody runs.")
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(removeCommand());
}

function listCommand(): Command {
  const command = new Command("list")
    .description("List handlers and tasks, with the live workers that have them.")
    .option("--json", "Print JSON.");
  return withFlags(withConfig(command), ["database", "data"]).action(async () => {
    const handlers = await withOperate(command, (operate) => operate.handlers.list());
    const { json } = command.opts<ChangeFlags>();
    process.stdout.write(`${json ? JSON.stringify({ items: handlers }) : listed(handlers)}\n`);
  });
}

function listed(handlers: readonly ListedHandler[]): string {
  if (handlers.length === 0) return "There are no handlers yet: no worker was ever started.";
  const rows = handlers.map((handler) => ({
    handler: handler.name,
    wants: wantsOf(handler),
    queue: handler.queue ?? "",
    workers: String(handler.workers),
    unfinished: String(handler.unfinished),
    dead: String(handler.dead),
    note: noteOf(handler),
  }));
  const orphaned = handlers.some((handler) => handler.orphaned);
  const help = "\n\nOrphaned: jobs wait, and no live worker has the handler. Start one that has it.";
  const shown = table(rows, {
    width: process.stdout.columns,
    cut: ["handler", "wants", "queue"],
    names: ["handler"],
  });
  return shown + (orphaned ? help : "");
}

function wantsOf({ kind, source, pattern }: ListedHandler): string {
  return kind === "task" ? "(task)" : `${source ?? "?"} ${pattern ?? "?"}`;
}

function noteOf({ orphaned, active, workers, queue }: ListedHandler): string {
  if (orphaned) return "ORPHANED";
  if (!active) return "removed";
  // inline handlers run where events are received
  return workers === 0 && queue !== INLINE ? "no worker" : "";
}

function removeCommand(): Command {
  const command = new Command("remove")
    .description("Let new events make no jobs for a handler; the jobs that it has stay.")
    .argument("<handler>", "The handler's name.");
  withChangeFlags(command);
  return withFlags(withConfig(command), ["database", "data"]).action(async (name: string) => {
    const flags = command.opts<ChangeFlags>();
    const mandate = { actor: actor(), reason: reasonOf(flags) };
    await withOperate(command, async ({ handlers }) => {
      const all = await handlers.list();
      const preview = all.find(
        (handler) => handler.name === name && handler.pattern !== null && handler.active,
      );
      if (!preview) throw noHandler(name);
      const question = `Remove the handler ${name}?`;
      const words = previewed(preview);
      await changeWithConsent(flags, { preview, words, any: true, question }, async () => {
        if (!(await handlers.remove(name, mandate))) throw noHandler(name);
        return { result: { name, removed: true }, words: `Removed ${name}.` };
      });
    });
  });
}

function noHandler(name: string): UkemiError {
  return new UkemiError(
    "invalid_option",
    `There is no active handler named ${JSON.stringify(name)}: ukemi handlers lists them.`,
  );
}

function previewed(handler: ListedHandler): string {
  const { unfinished, workers } = handler;
  const stay = unfinished === 1 ? "1 unfinished one stays" : `${unfinished} unfinished ones stay`;
  return [
    listed([{ ...handler, orphaned: false }]),
    "",
    `Events of ${handler.source} ${handler.pattern} would make no more jobs for it; ${stay}.`,
    ...(workers > 0
      ? [
          `${workers === 1 ? "1 live worker still has" : `${workers} live workers still have`} it: the next that starts registers it again.`,
        ]
      : []),
  ].join("\n");
}
