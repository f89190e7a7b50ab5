// `ukemi operations create`: a look at what would happen, a name, a reason, and how carefully it is done.
import { Command, Option } from "commander";
import type { Client, OperationPreview } from "../../client/client.ts";
import { UkemiError } from "../../errors.ts";
import { changeWithConsent, reasonOf, withChangeFlags, type ChangeFlags } from "../consent.ts";
import { selectionOf, withSelection } from "../dead-selection.ts";
import { showSpan } from "../moment.ts";
import { describeGroups } from "../show-groups.ts";
import { describeOperation, watchOperation } from "../show-operation.ts";
import { withApi, withTarget } from "../target.ts";

interface CreateFlags extends ChangeFlags {
  readonly kind: "replay" | "drop";
  readonly name?: string;
  readonly rate?: string;
  readonly canary?: boolean;
  readonly failureLimit?: string;
  readonly watch?: boolean;
}

export function createOperationCommand(): Command {
  const command = withSelection(
    new Command("create")
      .description("Replay or drop many dead letters; those that are meant are chosen now.")
      .addOption(
        new Option("--kind <kind>", "What is done to each.").choices(["replay", "drop"]).default("replay"),
      )
      .option("--name <text>", "A name for it, in your words. Needed unless --dry-run.")
      .option("--rate <number>", "Items per second. Unset: as fast as it goes.")
      .option("--canary", "First one, then ten, then all; each stage waits until the one before has ended.")
      .option(
        "--failure-limit <share>",
        "Above this share of items that died again it stops by itself. Default: 0.1.",
      )
      .option(
        "--watch",
        "Show how it goes until it ends; exit code 1 where it did not, or where any died again.",
      ),
  );
  withChangeFlags(command);
  return withTarget(command).action(async (ids: string[]) => {
    const flags = command.opts<CreateFlags>();
    const { kind, canary } = flags;
    const selection = selectionOf(command, ids);
    const reason = reasonOf(flags);
    const name = nameOf(flags);
    const manner = {
      kind,
      canary,
      rate: readNumber("--rate", flags.rate),
      failure_limit: readNumber("--failure-limit", flags.failureLimit),
    };
    const work = async (api: Client, place: string) => {
      const preview = await api.previewOperation({ ...selection, ...manner });
      const question = `Begin the ${kind} of ${preview.count} dead letters?`;
      const words = previewed(kind, preview);
      await changeWithConsent(
        flags,
        { place, preview, words, any: preview.count > 0, question },
        async () => {
          const made = await api.createOperation({ ...selection, ...manner, name, reason });
          const result = flags.watch ? await watchOperation(api, made.id) : made;
          const words = describeOperation(result);
          if (flags.watch) return { result, words };
          return {
            result,
            words,
            next: `Servers and workers run it: ukemi operations show ${made.id} --watch`,
          };
        },
      );
    };
    await withApi(command, work, { runsOperations: flags.watch === true });
  });
}

function nameOf({ name, dryRun }: CreateFlags): string {
  if (name !== undefined || dryRun) return name ?? "";
  throw new UkemiError("invalid_option", "--name must name it, so that others know what it is about.");
}

function readNumber(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (text.trim() !== "" && Number.isFinite(Number(text))) return Number(text);
  throw new UkemiError("invalid_option", `${flag} must be a number.`);
}

function previewed(kind: "replay" | "drop", preview: OperationPreview): string {
  return [
    ...describeGroups(kind, preview),
    ...(preview.in_operation > 0
      ? [`${preview.in_operation} of them wait in another operation: they will be skipped.`]
      : []),
    ...(preview.seconds === null ? [] : [`At this rate it takes about ${showSpan(preview.seconds * 1000)}.`]),
    ...(preview.count > preview.most
      ? [`One operation takes at most ${preview.most}: narrow it down, for example by --since and --until.`]
      : []),
  ].join("\n");
}
