// `ukemi effects`: what was done to the outside world, and what a person must decide.
import { Command } from "commander";
import { becameOf, describeMails } from "../effect-words.ts";
import { listCommand } from "../list.ts";
import { showAgo } from "../moment.ts";
import { describeEffect } from "../show-effect.ts";
import { showCommand } from "../show.ts";
import { cancelCommand, resolveCommand } from "./effects-change.ts";

export function effectsCommand(): Command {
  return new Command("effects")
    .description("See what was sent and called, and decide what nobody else can.")
    .addCommand(
      listCommand({
        name: "list",
        call: "listEffects",
        readsFile: true,
        description: "List effects, newest first. With --to, say of each mail what became of it.",
        row: (effect, effects) => ({
          id: effect.id,
          intended: showAgo(effect.planned_at),
          kind: effect.kind,
          state: effect.state,
          to: effect.target,
          event: effect.event_id ?? "",
          ...(effects.some(({ tenant }) => tenant !== null) ? { tenant: effect.tenant ?? "" } : {}),
          what: becameOf(effect),
        }),
        table: {
          cut: ["to", "event", "tenant", "what"],
          names: ["to"],
          optional: ["tenant", "event", "intended"],
        },
        words: (effects, { to }) => (to === undefined ? undefined : describeMails(effects, String(to))),
        empty: "There are no effects here.",
      }),
      { isDefault: true },
    )
    .addCommand(
      showCommand({
        call: "getEffect",
        readsFile: true,
        description: "Show one effect with every call, its receipt, and what was done to it.",
        argument: "The effect's id: ukemi effects lists them.",
        describe: describeEffect,
      }),
    )
    .addCommand(resolveCommand())
    .addCommand(cancelCommand());
}
