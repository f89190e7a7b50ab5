// `ukemi handlers`: who wants which events, who offers to run them, and whose jobs nobody runs.
import { Command } from "commander";
import type { Handler } from "../../client/client.ts";
import { UkemiError } from "../../errors.ts";
import { didYouMean } from "../../suggest.ts";
import { INLINE } from "../../work/handler.ts";
import { changeWithConsent, reasonOf, withChangeFlags, type ChangeFlags } from "../consent.ts";
import { listCommand, shown, type Listing } from "../list.ts";
import { withApi, withTarget } from "../target.ts";

const LISTING: Listing<"listHandlers"> = {
  name: "list",
  call: "listHandlers",
  description: "List handlers and tasks, with the live workers that have them.",
  row: (handler) => ({
    handler: handler.name,
    wants: wantsOf(handler),
    queue: handler.queue ?? "",
    workers: String(handler.workers),
    unfinished: String(handler.unfinished),
    dead: String(handler.dead),
    note: noteOf(handler),
  }),
  table: { cut: ["handler", "wants", "queue"], names: ["handler"], optional: ["wants", "queue"] },
  empty: "There are no handlers yet: no worker was ever started.",
  below: (handlers) =>
    handlers.some((handler) => handler.orphaned)
      ? "Orphaned: jobs wait, and no live worker has the handler. Start one that has it."
      : "",
};

export function handlersCommand(): Command {
  return new Command("handlers")
    .description("See who wants which events, and whose jobs nobody runs.")
    .addCommand(listCommand(LISTING), { isDefault: true })
    .addCommand(removeCommand());
}

function wantsOf({ kind, source, pattern }: Handler): string {
  return kind !== "handler" ? `(${kind})` : `${source ?? "?"} ${pattern ?? "?"}`;
}

function noteOf({ orphaned, active, workers, queue }: Handler): string {
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
  return withTarget(command).action(async (name: string) => {
    const flags = command.opts<ChangeFlags>();
    const reason = reasonOf(flags);
    await withApi(command, async (api, place) => {
      const active = (await api.listHandlers()).items.filter((item) => item.pattern !== null && item.active);
      const preview = active.find((handler) => handler.name === name) ?? noHandler(name, active);
      const question = `Remove the handler ${name}?`;
      const words = previewed(preview);
      await changeWithConsent(flags, { place, preview, words, any: true, question }, async () => {
        const result = await api.removeHandler({ name, reason });
        return { result, words: `Removed ${name}.` };
      });
    });
  });
}

function noHandler(name: string, active: readonly Handler[]): never {
  const near = didYouMean(
    name,
    active.map((handler) => handler.name),
  );
  throw new UkemiError(
    "invalid_option",
    `There is no active handler named ${JSON.stringify(name)} (ukemi handlers lists them)${near}`,
  );
}

function previewed(handler: Handler): string {
  const { unfinished, workers } = handler;
  const stay = unfinished === 1 ? "1 unfinished one stays" : `${unfinished} unfinished ones stay`;
  return [
    shown(LISTING, { items: [{ ...handler, orphaned: false }] }),
    "",
    `Events of ${handler.source} ${handler.pattern} would make no more jobs for it; ${stay}.`,
    ...(workers > 0
      ? [
          `${workers === 1 ? "1 live worker still has" : `${workers} live workers still have`} it: the next that starts registers it again.`,
        ]
      : []),
  ].join("\n");
}
