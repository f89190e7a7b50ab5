// `ukemi bodies`: erase those of one subject, and care for the keys that they are sealed with.
import { Command } from "commander";
import type { Erasure } from "../../client/client.ts";
import { createOperate, type Operate } from "../../operate/operate.ts";
import {
  actor,
  changeWithConsent,
  reasonOf,
  stopOnInterrupt,
  withChangeFlags,
  type ChangeFlags,
} from "../consent.ts";
import { listCommand } from "../list.ts";
import { showTime } from "../moment.ts";
import { createProgressBar } from "../progress.ts";
import { withStore, withStoreFlags } from "../store.ts";
import { withApi, withTarget } from "../target.ts";

export function bodiesCommand(): Command {
  return new Command("bodies")
    .description(
      "Erase the bodies of one subject, and care for the keys that bodies and effects are sealed with.",
    )
    .addCommand(eraseCommand())
    .addCommand(
      listCommand({
        name: "keys",
        call: "listDataKeys",
        description: "List the data keys that bodies are sealed with.",
        readsFile: true,
        row: (key) => ({
          "data key": key.id,
          made: showTime(key.created_at),
          "opened by": key.wrapped_by,
          opens: key.opens ? "yes" : "NO",
        }),
        table: { cut: ["opened by"], names: ["opened by"] },
        below: (keys) =>
          keys.some(({ opens }) => !opens)
            ? "NO: its master key is not among bodyKeys (UKEMI_BODY_KEYS). Bodies under it cannot be opened."
            : "",
        empty: "There are no data keys: bodies are stored as they came (set UKEMI_BODY_KEYS to seal them).",
      }),
    )
    .addCommand(rewrapCommand())
    .addCommand(sealCommand());
}

function eraseCommand(): Command {
  const command = new Command("erase")
    .description("Remove the bodies of every event of one subject; events, outcomes and the audit stay.")
    .option("--ref <id>", "The subject's id, such as cus_…, or kind:id. This, or --event.")
    .option("--event <id>", "One event, by the sender's id or ours.")
    .option("--include-unfinished", "Also where jobs still need the body: unfinished ones are cancelled.");
  withChangeFlags(command);
  return withTarget(command).action(async () => {
    const flags = command.opts<ChangeFlags & { ref?: string; event?: string; includeUnfinished?: boolean }>();
    const { ref, event, includeUnfinished } = flags;
    const reason = reasonOf(flags);
    const request = { ref, event, include_unfinished: includeUnfinished };
    await withApi(command, async (api, place) => {
      const preview = await api.eraseBodies({ ...request, dry_run: true });
      const words = previewed(preview, includeUnfinished ?? false);
      // who says yes beforehand means it also where all were erased before: what errors have taken since goes too
      const any = preview.events + preview.rejections + preview.effects > 0 || flags.yes === true;
      const question = `Erase the bodies of ${preview.events} event${preview.events === 1 ? "" : "s"} for good?`;
      await changeWithConsent(flags, { place, preview, words, any, question }, async () => {
        const result = await api.eraseBodies({ ...request, reason });
        const left = (result.left_running ?? 0) + (result.left_unfinished ?? 0);
        return { result, words: erased(result), failed: left > 0 };
      });
    });
  });
}

function previewed(preview: Erasure, includeUnfinished: boolean): string {
  const { events, bodies, effects, unfinished = 0, running = 0, dead = 0, rejections } = preview;
  if (events + rejections + effects === 0)
    return "No event carries this, or all were erased before. What errors have taken from them since would go.";
  return [
    `${events} event${events === 1 ? "" : "s"}, ${bodies} of them with a body, would be erased.`,
    ...(effects > 0 ? [`What ${effects} effects of theirs sent, and to whom, would go too.`] : []),
    ...(rejections > 0 ? [`${rejections} refused requests that contain the id would go too.`] : []),
    ...(unfinished > 0
      ? [`${unfinished} jobs or effects of theirs have not ended (${running} at work).`]
      : []),
    ...(dead > 0 ? [`${dead} dead letters of theirs could not be replayed any more.`] : []),
    ...(unfinished + dead > 0 && !includeUnfinished
      ? ["It would be refused: let them end, or add --include-unfinished."]
      : []),
  ].join("\n");
}

function erased(result: Erasure): string {
  const { bodies, events, effects, jobs_cancelled = 0, left_running = 0, left_unfinished = 0 } = result;
  return [
    `Erased ${bodies} bodies of ${events} events${effects > 0 ? `, what ${effects} effects sent` : ""}${jobs_cancelled > 0 ? `, cancelled ${jobs_cancelled} jobs` : ""}.`,
    ...(left_running > 0
      ? [`${left_running} were left: a handler is at work on them. Erase again in a moment.`]
      : []),
    ...(left_unfinished > 0 ? [`${left_unfinished} were left: jobs have come to need them.`] : []),
  ].join("\n");
}

/** Master keys never travel: these commands open the database themselves. */
function withHands<T>(command: Command, work: (operate: Operate, place: string) => Promise<T>): Promise<T> {
  return withStore(
    command,
    (pool, { bodyKeys }, place) =>
      work(createOperate({ open: () => Promise.resolve(pool), bodyKeys, readTimeoutMs: 60_000 }), place),
    { readsFile: true },
  );
}

function rewrapCommand(): Command {
  const command = new Command("rewrap").description(
    "Wrap every data key anew under the first of bodyKeys; the other master keys are not needed afterwards.",
  );
  withChangeFlags(command);
  return withStoreFlags(command).action(async () => {
    const flags = command.opts<ChangeFlags>();
    const mandate = { actor: actor(), reason: reasonOf(flags) };
    await withHands(command, async ({ bodies }, place) => {
      const preview = await bodies.previewRewrap();
      const { wrapped_by, changed, data_keys } = preview;
      const words =
        changed === 0
          ? `${wrapped_by} opens all ${data_keys} data keys already.`
          : `${changed} of ${data_keys} data keys would be wrapped anew, under ${wrapped_by}.`;
      const question = "Wrap them anew?";
      await changeWithConsent(flags, { place, preview, words, any: changed > 0, question }, async () => {
        const result = await bodies.rewrap(mandate);
        const done = `${result.changed} of ${result.data_keys} data keys were wrapped anew: ${result.wrapped_by} opens all of them now.`;
        return { result, words: done };
      });
    });
  });
}

function sealCommand(): Command {
  const command = new Command("seal").description(
    "Seal bodies, and what effects hold, that were stored before bodyKeys was set. What is done stays done.",
  );
  withChangeFlags(command);
  return withStoreFlags(command).action(async () => {
    const flags = command.opts<ChangeFlags>();
    const mandate = { actor: actor(), reason: reasonOf(flags) };
    await withHands(command, async ({ bodies }, place) => {
      const preview = await bodies.previewSeal();
      const { plain, effects, addresses } = preview;
      const any = plain + effects + addresses > 0;
      const words = any ? `${counted(plain, preview)} would be sealed.` : "Everything is sealed already.";
      const previewed = { place, preview, words, any, question: "Seal them?" };
      await changeWithConsent(flags, previewed, async () => {
        const bar = createProgressBar("sealing");
        const stop = stopOnInterrupt();
        try {
          const result = await bodies.seal(mandate, { onProgress: bar.show, signal: stop.signal });
          const rest = result.stopped ? " Stopped before the end: the same command does the rest." : "";
          return {
            result,
            words: `Sealed ${counted(result.sealed, result)}.${rest}`,
            failed: result.stopped,
          };
        } finally {
          bar.end();
          stop.release();
        }
      });
    });
  });
}

const counted = (
  bodies: number,
  { effects, addresses }: { readonly effects: number; readonly addresses: number },
) => `${bodies} bodies, ${effects} effects and ${addresses} addresses that get no mail`;
