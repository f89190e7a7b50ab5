// Which dead letters a change would touch, in words.
import type { PreviewGroup } from "../client/client.ts";
import { table } from "./table.ts";

interface Touched {
  readonly count?: number | undefined;
  readonly without_body?: number | undefined;
  readonly groups?: readonly PreviewGroup[] | undefined;
}

/** `1 dead letter`, `2 dead letters`. */
export const counted = (count: number) => `${count} dead letter${count === 1 ? "" : "s"}`;

/** Lines: a table of the groups, and what will not go as one might think. */
export function describeGroups(
  act: "replay" | "drop",
  { count = 0, without_body = 0, groups = [] }: Touched,
): readonly string[] {
  if (count === 0) return ["No dead letter is meant."];
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
  ];
}
