// `ukemi dead replay` and `ukemi dead drop`: with a reason, after a look at what would happen.
import { Command } from "commander";
import type { DeadBatchesResult } from "../../operate/dead.ts";
import type { Operate } from "../../operate/operate.ts";
import type { DeadPreview, SkipReason } from "../../storage/replay.ts";
import { withConfig } from "../config.ts";
import {
  changeWithConsent,
  reasonOf,
  stopOnInterrupt,
  withChangeFlags,
  type ChangeFlags,
} from "../consent.ts";
import { selectionOf, withDeadFlags, type DeadFlags } from "../dead-flags.ts";
import { actor, withOperate } from "../operator.ts";
import { createProgressBar } from "../progress.ts";
import { withFlags } from "../settings.ts";
import { table } from "../table.ts";

type Act = "replay" | "drop";

const DONE = { replay: "Replayed", drop: "Dropped" } as const;

const WHY: Readonly<Record<SkipReason, string>> = {
  unknown: "there is no such job",
  not_dead: "it is not dead, or no longer",
  died_again: "somebody else replayed it meanwhile, and it is dead anew",
  no_body: "the event's body is gone",
};

export function changeDeadCommand(act: Act, description: string): Command {
  const command = withDeadFlags(
    new Command(act).description(description).argument("[ids...]", "Ids of jobs, instead of a filter."),
  ).option("--all", "All dead letters.");
  withChangeFlags(command);
  return withFlags(withConfig(command), ["database", "data"]).action(async (ids: string[]) => {
    const flags = command.opts<DeadFlags & ChangeFlags & { readonly all?: boolean }>();
    const selection = selectionOf(ids, flags);
    const mandate = { actor: actor(), reason: reasonOf(flags) };
    await withOperate(command, async ({ dead }) => {
      const preview = await dead.preview(selection);
      // ids that are not dead are answered for one by one
      const any = preview.count > 0 || ids.length > 0;
      const question = `${act === "replay" ? "Replay" : "Drop"} ${counted(preview.count)}?`;
      await changeWithConsent(flags, { preview, words: previewed(act, preview), any, question }, async () => {
        const result = await watched(dead, act, selection, mandate);
        const failed = result.stopped || (ids.length > 0 && result.skipped > 0);
        return { result, words: done(act, result), failed };
      });
    });
  });
}

async function watched(
  dead: Operate["dead"],
  act: Act,
  ...[selection, mandate]: Parameters<Operate["dead"]["replayInBatches"]>
): Promise<DeadBatchesResult> {
  const bar = createProgressBar(act === "replay" ? "replaying" : "dropping");
  const stop = stopOnInterrupt();
  try {
    return await dead[`${act}InBatches`](selection, mandate, { onProgress: bar.show, signal: stop.signal });
  } finally {
    bar.end();
    stop.release();
  }
}

const counted = (count: number) => `${count} dead letter${count === 1 ? "" : "s"}`;

function previewed(act: Act, { count, without_body, groups }: DeadPreview): string {
  if (count === 0) return "No dead letter is meant.";
  const rows = groups.map((group) => ({
    count: String(group.count),
    error: group.error_class ?? "unknown",
    handler: group.handler,
    ...(act === "replay" ? { workers: String(group.workers) } : {}),
  }));
  const unoffered = groups.filter((group) => group.workers === 0).map((group) => group.handler);
  return [
    table(rows, { width: process.stdout.columns, cut: ["error", "handler"], names: ["handler"] }),
    "",
    `${counted(count)} would be ${act === "replay" ? "replayed" : "dropped"}.`,
    ...(act === "replay" && without_body > 0
      ? [`${without_body} of them cannot be: the event's body is gone. They will be skipped.`]
      : []),
    ...(act === "replay" && unoffered.length > 0
      ? [`No live worker has ${[...new Set(unoffered)].join(", ")}: these jobs will wait for one.`]
      : []),
  ].join("\n");
}

function done(act: Act, { changed, skipped, skips, stopped }: DeadBatchesResult): string {
  return [
    `${DONE[act]} ${counted(changed)}${skipped > 0 ? `, skipped ${skipped}` : ""}.`,
    ...skips.map((skip) => `  ${skip.id} was skipped: ${WHY[skip.reason]}`),
    ...(skipped > skips.length ? [`  … and ${skipped - skips.length} more`] : []),
    ...(stopped ? ["Stopped before the end: the same command does the rest."] : []),
  ].join("\n");
}
