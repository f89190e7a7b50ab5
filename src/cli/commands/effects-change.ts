// `ukemi effects resolve` and `ukemi effects cancel`: with a reason, after a look at what would happen.
import { Command, Option } from "commander";
import type { EffectDetail } from "../../client/client.ts";
import { RESOLUTIONS, type Resolution } from "../../storage/effect-resolve.ts";
import { changeWithConsent, reasonOf, withChangeFlags, type ChangeFlags } from "../consent.ts";
import { describeEffect } from "../show-effect.ts";
import { withApi, withTarget } from "../target.ts";

const ID = "The effect's id: ukemi effects lists them.";

/** What each resolution leads to. */
function leadsTo(as: Resolution, { followers }: EffectDetail): string {
  const then = followers.length === 0 ? "" : ` ${followers.length} that waited for it would begin.`;
  switch (as) {
    case "done":
      return `It would count as done, and never be tried again.${then}`;
    case "failed":
      return "It would count as failed, and never be tried again.";
    case "again":
      return "It would be tried again. If an earlier call was heard after all, it happens twice, unless the peer knows its key.";
  }
}

export function resolveCommand(): Command {
  const command = new Command("resolve")
    .description("Decide an effect of which nobody knows whether it happened.")
    .argument("<id>", ID)
    .addOption(
      new Option(
        "--as <word>",
        "What you found out. done: it happened. failed: it did not, and shall not. again: try it again.",
      )
        .choices(RESOLUTIONS)
        .makeOptionMandatory(),
    );
  withChangeFlags(command);
  return withTarget(command).action(async (id: string) => {
    const flags = command.opts<ChangeFlags & { readonly as: Resolution }>();
    const reason = reasonOf(flags);
    await withApi(command, async (api, place) => {
      const preview = await api.getEffect({ id });
      const words = `${describeEffect(preview)}\n\n${leadsTo(flags.as, preview)}`;
      const question = `Resolve it as ${flags.as}?`;
      await changeWithConsent(flags, { place, preview, words, any: true, question }, async () => {
        const result = await api.resolveEffect({ id, as: flags.as, reason });
        const how = result.job === null || flags.as !== "again" ? "" : `, tried again by job ${result.job}`;
        return { result, words: `The effect ${id} is ${result.state}${how}.` };
      });
    });
  });
}

export function cancelCommand(): Command {
  const command = new Command("cancel")
    .description("Cancel an effect that has not begun, and those that wait for it.")
    .argument("<id>", ID);
  withChangeFlags(command);
  return withTarget(command).action(async (id: string) => {
    const flags = command.opts<ChangeFlags>();
    const reason = reasonOf(flags);
    await withApi(command, async (api, place) => {
      const preview = await api.getEffect({ id });
      const also = preview.followers.filter(({ state }) => state === "planned").length;
      const words = `${describeEffect(preview)}\n\nIt would never be carried out${also === 0 ? "" : `, nor those that wait for it (${also} directly)`}. Its key stays used.`;
      const question = "Cancel it?";
      await changeWithConsent(flags, { place, preview, words, any: true, question }, async () => {
        const result = await api.cancelEffect({ id, reason });
        const others = result.followers.length;
        return {
          result,
          words: `The effect ${id} is cancelled${others === 0 ? "" : `, and ${others} that waited for it`}.`,
        };
      });
    });
  });
}
