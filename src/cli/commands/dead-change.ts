// `ukemi dead replay` and `ukemi dead drop`: with a reason, after a look at what would happen.
import { Command } from "commander";
import type { DeadChange, Skip } from "../../client/client.ts";
import { UkemiError } from "../../errors.ts";
import { changeWithConsent, reasonOf, withChangeFlags, type ChangeFlags } from "../consent.ts";
import { selectionOf, withSelection } from "../dead-selection.ts";
import { counted, describeGroups } from "../show-groups.ts";
import { withApi, withTarget } from "../target.ts";

type Act = "replay" | "drop";

const DONE = { replay: "Replayed", drop: "Dropped" } as const;

const WHY: Readonly<Record<Skip["reason"], string>> = {
  unknown: "there is no such job",
  not_dead: "it is not dead, or no longer",
  died_again: "somebody else replayed it meanwhile, and it is dead anew",
  no_body: "the event's body is gone",
  erased: "the event's body was erased",
};

/** How many one commit changes. */
const MOST = 1000;

export function changeDeadCommand(act: Act, description: string): Command {
  const command = withChangeFlags(withSelection(new Command(act).description(description)));
  return withTarget(command).action(async (ids: string[]) => {
    const flags = command.opts<ChangeFlags>();
    const selection = selectionOf(command, ids);
    const reason = reasonOf(flags);
    await withApi(command, async (api, place) => {
      const change = act === "replay" ? api.replayDead : api.dropDead;
      const preview = await change({ ...selection, dry_run: true });
      const count = preview.count ?? 0;
      // ids that are not dead are answered for one by one
      const any = count > 0 || ids.length > 0;
      const question = `${act === "replay" ? "Replay" : "Drop"} ${counted(count)}?`;
      if (count > MOST && !flags.dryRun) throw new UkemiError("invalid_option", tooMany(act, count));
      const hints = count > MOST ? [tooMany(act, count)] : [];
      const words = [...describeGroups(act, preview), ...hints].join("\n");
      await changeWithConsent(flags, { place, preview, words, any, question }, async () => {
        const result = await change({ ...selection, reason });
        const failed = ids.length > 0 && (result.skipped ?? 0) > 0;
        return { result, words: done(act, result), failed };
      });
    });
  });
}

function tooMany(act: Act, count: number): string {
  return [
    `${counted(count)} are meant, and one commit changes at most ${MOST}: make an operation, which can be watched and stopped.`,
    `  ukemi operations create --kind ${act} --name … --reason … (with the same filter)`,
  ].join("\n");
}

function done(act: Act, { changed = 0, skipped = 0, skips = [] }: DeadChange): string {
  return [
    `${DONE[act]} ${counted(changed)}${skipped > 0 ? `, skipped ${skipped}` : ""}.`,
    ...skips.map((skip) => `  ${skip.id} was skipped: ${WHY[skip.reason]}`),
    ...(skipped > skips.length ? [`  … and ${skipped - skips.length} more`] : []),
  ].join("\n");
}
