// `ukemi queues`: what waits in each queue, and holding one up.
import { Command } from "commander";
import type { Queue } from "../../client/client.ts";
import { UkemiError } from "../../errors.ts";
import { didYouMean } from "../../suggest.ts";
import { inlineRuns } from "../../operate/queues.ts";
import { INLINE } from "../../work/handler.ts";
import { changeWithConsent, reasonOf, withChangeFlags, type ChangeFlags } from "../consent.ts";
import { listCommand, shown, type Listing } from "../list.ts";
import { showSpan } from "../moment.ts";
import { withApi, withTarget } from "../target.ts";

const LISTING: Listing<"listQueues"> = {
  name: "list",
  call: "listQueues",
  description: "List the queues with what waits in them.",
  row: (queue, queues) => ({
    queue: queue.name,
    ready: String(queue.ready),
    scheduled: String(queue.scheduled),
    waiting: String(queue.waiting),
    running: String(queue.running),
    dead: String(queue.dead),
    oldest: queue.oldest_ready_seconds === null ? "" : showSpan(queue.oldest_ready_seconds * 1000),
    ...(queues.some(({ paused }) => paused) ? { paused: pausedOf(queue) } : {}),
  }),
  table: { cut: ["queue", "paused"], names: ["queue"], optional: ["waiting", "scheduled"] },
  empty: "There are no queues yet: no handler was ever registered.",
};

function pausedOf({ paused, reason }: Queue): string {
  if (!paused) return "";
  return reason === null ? "PAUSED" : `PAUSED: ${reason}`;
}

export function queuesCommand(): Command {
  return new Command("queues")
    .description("See what waits in each queue, and pause or resume one.")
    .addCommand(listCommand(LISTING), { isDefault: true })
    .addCommand(
      changeCommand("pause", "Let no worker claim jobs of a queue; those that run go on to their end."),
    )
    .addCommand(changeCommand("resume", "Let workers claim jobs of a queue again."));
}

function changeCommand(act: "pause" | "resume", description: string): Command {
  const command = new Command(act).description(description).argument("<queue>", "The queue's name.");
  withChangeFlags(command);
  return withTarget(command).action(async (name: string) => {
    const flags = command.opts<ChangeFlags>();
    const reason = reasonOf(flags);
    if (name === INLINE && act === "pause") throw inlineRuns();
    await withApi(command, async (api, place) => {
      const { items } = await api.listQueues();
      const queue = items.find((item) => item.name === name) ?? noQueue(name, items);
      const question = `${act === "pause" ? "Pause" : "Resume"} the queue ${name}?`;
      const words = previewed(act, queue);
      await changeWithConsent(flags, { place, preview: queue, words, any: true, question }, async () => {
        const result = await (act === "pause" ? api.pauseQueue : api.resumeQueue)({ name, reason });
        const now = result.paused ? "paused" : "open";
        return { result, words: `The queue ${name} is ${now}${result.changed ? "" : ", as it was before"}.` };
      });
    });
  });
}

/** A mistyped name would look paused, and nothing would have stopped. */
function noQueue(name: string, queues: readonly Queue[]): never {
  const names = queues.map((queue) => queue.name);
  const there =
    names.length === 0
      ? "there are none yet"
      : `there ${names.length === 1 ? "is" : "are"} ${names.join(", ")}`;
  throw new UkemiError(
    "invalid_option",
    `There is no queue ${JSON.stringify(name)}; ${there}${didYouMean(name, names)}`,
  );
}

function previewed(act: "pause" | "resume", queue: Queue): string {
  const waits = `${queue.ready} ready, ${queue.scheduled} scheduled, ${queue.waiting} waiting, ${queue.running} running`;
  return `${shown(LISTING, { items: [queue] })}\n\n${waits}: would be ${act === "pause" ? "paused" : "resumed"}.`;
}
