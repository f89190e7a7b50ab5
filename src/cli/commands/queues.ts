// `ukemi queues`: what waits in each queue, and holding one up.
import { Command } from "commander";
import type { ListedQueue } from "../../storage/queues.ts";
import { withConfig } from "../config.ts";
import { changeWithConsent, reasonOf, withChangeFlags, type ChangeFlags } from "../consent.ts";
import { showSpan } from "../moment.ts";
import { actor, withOperate } from "../operator.ts";
import { withFlags } from "../settings.ts";
import { table } from "../table.ts";

export function queuesCommand(): Command {
  return new Command("queues")
    .description("See what waits in each queue, and pause or resume one.")
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(
      changeCommand("pause", "Let no worker claim jobs of a queue; those that run go on to their end."),
    )
    .addCommand(changeCommand("resume", "Let workers claim jobs of a queue again."));
}

function listCommand(): Command {
  const command = new Command("list")
    .description("List the queues with what waits in them.")
    .option("--json", "Print JSON.");
  return withFlags(withConfig(command), ["database", "data"]).action(async () => {
    const queues = await withOperate(command, (operate) => operate.queues.list());
    const { json } = command.opts<ChangeFlags>();
    process.stdout.write(`${json ? JSON.stringify({ items: queues }) : listed(queues)}\n`);
  });
}

function listed(queues: readonly ListedQueue[]): string {
  if (queues.length === 0) return "There are no queues yet: no handler was ever registered.";
  const rows = queues.map((queue) => ({
    queue: queue.name,
    paused: queue.paused ? "PAUSED" : "",
    ready: String(queue.ready),
    scheduled: String(queue.scheduled),
    waiting: String(queue.waiting),
    running: String(queue.running),
    dead: String(queue.dead),
    oldest: queue.oldest_ready_seconds === null ? "" : showSpan(queue.oldest_ready_seconds * 1000),
    ...(queues.some(({ paused }) => paused) ? { reason: queue.paused ? (queue.reason ?? "") : "" } : {}),
  }));
  return table(rows, { width: process.stdout.columns, cut: ["queue", "reason"] });
}

function changeCommand(act: "pause" | "resume", description: string): Command {
  const command = new Command(act).description(description).argument("<queue>", "The queue's name.");
  withChangeFlags(command);
  return withFlags(withConfig(command), ["database", "data"]).action(async (name: string) => {
    const flags = command.opts<ChangeFlags>();
    const mandate = { actor: actor(), reason: reasonOf(flags) };
    await withOperate(command, async ({ queues }) => {
      await queues.check(name, act);
      const preview = (await queues.list()).find((queue) => queue.name === name);
      const question = `${act === "pause" ? "Pause" : "Resume"} the queue ${name}?`;
      const words = preview ? previewed(act, preview) : "";
      await changeWithConsent(flags, { preview, words, any: true, question }, async () => {
        const result = await queues[act](name, mandate);
        const now = result.paused ? "paused" : "open";
        return { result, words: `The queue ${name} is ${now}${result.changed ? "" : ", as it was before"}.` };
      });
    });
  });
}

function previewed(act: "pause" | "resume", queue: ListedQueue): string {
  const waits = `${queue.ready} ready, ${queue.scheduled} scheduled, ${queue.waiting} waiting, ${queue.running} running`;
  return `${listed([queue])}\n\n${waits}: would be ${act === "pause" ? "paused" : "resumed"}.`;
}
