// `ukemi operations`: replay or drop of many dead letters as an object that can be watched and stopped.
import { Command } from "commander";
import type { Client, Operation } from "../../client/client.ts";
import { changeWithConsent, reasonOf, withChangeFlags, type ChangeFlags } from "../consent.ts";
import { withApi, withTarget } from "../target.ts";
import { listCommand } from "../list.ts";
import { print, printJson } from "../print.ts";
import { showAgo, showTime } from "../moment.ts";
import { describeOperation, stateOf, watchOperation } from "../show-operation.ts";
import { createOperationCommand } from "./operation-create.ts";

export function operationsCommand(): Command {
  return new Command("operations")
    .description("Replay or drop many dead letters, watch how it goes, and stop it.")
    .addCommand(
      listCommand({
        name: "list",
        call: "listOperations",
        description: "List operations, newest first.",
        row: (operation) => ({
          id: operation.id,
          made: showAgo(operation.created_at),
          kind: operation.kind,
          name: operation.name,
          state: stateOf(operation),
          progress: `${Math.floor(operation.progress * 100)} %`,
          died: String(operation.counts.dead),
          items: String(operation.total),
          by: operation.actor,
          end: endOf(operation),
        }),
        table: { cut: ["name", "by"], optional: ["by", "end", "made", "items", "kind"] },
        empty: "There are no operations.",
      }),
      { isDefault: true },
    )
    .addCommand(createOperationCommand())
    .addCommand(showCommand())
    .addCommand(itemsCommand())
    .addCommand(changeCommand("abort", "Touch no further item; what was replayed before goes on to its end."))
    .addCommand(changeCommand("resume", "Go on with the items that wait, after an abort or a stop."));
}

function endOf({ finished_at, stopped_at, estimated_end_at }: Operation): string {
  const at = finished_at ?? stopped_at;
  if (at !== null) return showTime(at);
  return estimated_end_at === null ? "" : `about ${showTime(estimated_end_at)}`;
}

const ID = "The operation's id: ukemi operations lists them.";

function showCommand(): Command {
  const command = new Command("show")
    .description("Show one operation with how far it has come, and what it waits for.")
    .argument("<id>", ID)
    .option(
      "--watch",
      "Show how it goes until it ends; exit code 1 where it did not come to its end, or where any died again.",
    )
    .option("--json", "Print the API's answer as JSON, on one line.");
  return withTarget(command).action(async (id: string) => {
    const { watch, json } = command.opts<{ watch?: boolean; json?: boolean }>();
    const work = async (api: Client) => {
      const operation = watch ? await watchOperation(api, id) : await api.getOperation({ id });
      if (json) printJson(operation);
      else print(describeOperation(operation));
    };
    await withApi(command, work, { runsOperations: watch === true });
  });
}

function itemsCommand(): Command {
  return listCommand({
    name: "items",
    call: "listOperationItems",
    description: "List what became of each job of an operation, in their order.",
    argument: { name: "id", description: ID },
    row: (item) => ({
      job: String(item.job),
      state: item.state,
      handler: item.handler ?? "",
      event: item.event_id ?? "",
      when: showAgo(item.changed_at),
      message: `${item.error_class === null ? "" : `${item.error_class}: `}${item.message ?? ""}`,
    }),
    table: { cut: ["handler", "event", "message"], names: ["handler"], optional: ["when"] },
    empty: "There are no such items.",
  });
}

function changeCommand(act: "abort" | "resume", description: string): Command {
  const command = new Command(act).description(description).argument("<id>", ID);
  withChangeFlags(command);
  return withTarget(command).action(async (id: string) => {
    const flags = command.opts<ChangeFlags>();
    const reason = reasonOf(flags);
    await withApi(command, async (api, place) => {
      const operation = await api.getOperation({ id });
      const words = describeOperation(operation);
      const question = `${act === "abort" ? "Abort" : "Resume"} the operation ${operation.name}?`;
      await changeWithConsent(flags, { place, preview: operation, words, any: true, question }, async () => {
        const result = await (act === "abort" ? api.abortOperation : api.resumeOperation)({ id, reason });
        const before = result.changed ? "" : ", as it was before";
        return { result, words: `The operation ${operation.name} is ${result.state}${before}.` };
      });
    });
  });
}
