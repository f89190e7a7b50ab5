// `ukemi suppressions`: addresses that get no mail.
import { Command } from "commander";
import type { Client } from "../../client/client.ts";
import { changeWithConsent, reasonOf, withChangeFlags, type ChangeFlags } from "../consent.ts";
import { listCommand, shown, type Listing } from "../list.ts";
import { showAgo } from "../moment.ts";
import { withApi, withTarget } from "../target.ts";

const LISTING: Listing<"listSuppressions"> = {
  name: "list",
  call: "listSuppressions",
  readsFile: true,
  description: "List the addresses that get no mail.",
  row: (item, items) => ({
    address: item.address,
    since: showAgo(item.at),
    because: item.reason,
    ...(items.some(({ tenant }) => tenant !== null) ? { tenant: item.tenant ?? "" } : {}),
    effect: item.effect ?? "",
  }),
  table: { cut: ["address", "tenant"], names: ["address"], optional: ["effect"] },
  empty: "There are no such addresses on the list.",
};

export function suppressionsCommand(): Command {
  return new Command("suppressions")
    .description("See which addresses get no mail and why, and change it.")
    .addCommand(listCommand(LISTING), { isDefault: true })
    .addCommand(changeCommand("add", "Send no mail to an address any more, not even what is planned."))
    .addCommand(
      changeCommand("remove", "Send mail to an address again; what was suppressed meanwhile is not sent."),
    );
}

function changeCommand(act: "add" | "remove", description: string): Command {
  const command = new Command(act)
    .description(description)
    .argument("<address>", "The mailbox.")
    .option("--tenant <text>", "Whose mail; without it, mail of nobody in particular.");
  withChangeFlags(command);
  return withTarget(command).action(async (address: string) => {
    const flags = command.opts<ChangeFlags & { readonly tenant?: string }>();
    const reason = reasonOf(flags);
    const meant = { address, tenant: flags.tenant };
    const work = async (api: Client, place: string) => {
      const { items } = await api.listSuppressions({ address });
      const preview = { items: items.filter(({ tenant }) => tenant === (flags.tenant ?? null)) };
      const would = act === "add" ? "would get no mail any more" : "would get mail again";
      const words = `${shown(LISTING, preview)}\n\n${address} ${would}.`;
      const question = act === "add" ? "Put it on the list?" : "Take it from the list?";
      await changeWithConsent(flags, { place, preview, words, any: true, question }, async () => {
        const change = act === "add" ? api.addSuppression : api.removeSuppression;
        const result = await change({ ...meant, reason });
        const now = result.suppressed ? "gets no mail" : "gets mail again";
        return { result, words: `${result.address} ${now}${result.changed ? "" : ", as before"}.` };
      });
    };
    // the master keys of sealed addresses may stand in the file
    await withApi(command, work, { readsFile: true });
  });
}
