// Which dead letters a change would touch, in words.
import type { EffectCount, EffectPreview, PreviewGroup } from "../client/client.ts";
import { briefly } from "./effect-words.ts";
import { table } from "./table.ts";
import { clean } from "./width.ts";

interface Touched {
  readonly count?: number | undefined;
  readonly without_body?: number | undefined;
  readonly groups?: readonly PreviewGroup[] | undefined;
  readonly effects?: EffectPreview | undefined;
}

/** `1 dead letter`, `2 dead letters`. */
export const counted = (count: number) => `${count} dead letter${count === 1 ? "" : "s"}`;

/** Lines: a table of the groups, and what will not go as one might think. */
export function describeGroups(
  act: "replay" | "drop",
  { count = 0, without_body = 0, groups = [], effects }: Touched,
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
    ...(effects === undefined ? [] : describeEffects(effects)),
  ];
}

/** What it means for the outside world. */
function describeEffects({ would_run, done }: EffectPreview): readonly string[] {
  return [
    ...listed(would_run, "would be tried:"),
    ...listed(done, "done already, and will not be repeated:"),
  ];
}

function listed({ count, items }: EffectCount, what: string): readonly string[] {
  if (count === 0) return [];
  const rest = count - items.length;
  return [
    "",
    `${count} effect${count === 1 ? "" : "s"} ${what}`,
    ...items.map((effect) => clean(`  ${briefly(effect)}`)),
    ...(rest > 0 ? [`  … and ${rest} more`] : []),
  ];
}
