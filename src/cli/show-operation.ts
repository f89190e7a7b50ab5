// One operation in words, and watching it until it ends.
import type { Client, Operation, OperationDetail } from "../client/client.ts";
import { sleep } from "../clock.ts";
import { EXIT } from "./exit.ts";
import { showAgo, showTime } from "./moment.ts";
import { createProgressBar } from "./progress.ts";
import { note } from "./print.ts";
import { mayPass, untilInterrupted } from "./watch.ts";
import { clean } from "./width.ts";

const LOOK_MS = 500;

/** The state, loud where a person has to look. */
export function stateOf({ state, stage, canary }: Operation): string {
  if (state === "stopped") return "STOPPED";
  return state === "running" && canary && stage !== "all" ? `canary: ${stage}` : state;
}

/** Everything that a person wants to know of it. */
export function describeOperation(operation: OperationDetail): string {
  const { counts } = operation;
  const ended = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${count} ${state}`);
  const facts: readonly (readonly [string, string | null])[] = [
    ["operation", `${operation.name} (${operation.id})`],
    ["what", `${operation.kind} of ${operation.total} dead letters: ${selectionOf(operation)}`],
    ["by", `${operation.actor}, ${showAgo(operation.created_at)}: ${operation.reason}`],
    ["how", howOf(operation)],
    ["state", `${stateOf(operation)}${operation.stop_reason === null ? "" : `: ${operation.stop_reason}`}`],
    ["progress", `${Math.floor(operation.progress * 100)} %: ${ended.join(", ")}`],
    ["waits for", operation.waits_for],
    ["fault", operation.fault],
    ["end", endOf(operation)],
  ];
  return facts
    .flatMap(([name, text]) => (text === null ? [] : [clean(`${name.padEnd(10)} ${text}`)]))
    .join("\n");
}

function selectionOf({ selection }: Operation): string {
  if (selection.all) return "all of them";
  if (Array.isArray(selection.ids)) return "those named by id";
  const fields = Object.entries((selection.filter ?? {}) as Record<string, unknown>);
  return fields
    .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}

function howOf({ rate_per_second: rate, canary, failure_limit: limit }: Operation): string {
  return [
    rate === null ? "as fast as it goes" : `${rate} per second`,
    ...(canary ? ["first one, then ten, then all"] : []),
    ...(limit === null ? [] : [`stops above ${Math.round(limit * 100)} % failures`]),
  ].join(", ");
}

function endOf({ finished_at, stopped_at, estimated_end_at }: Operation): string | null {
  if (finished_at !== null) return showTime(finished_at);
  if (stopped_at !== null) return `stands still since ${showTime(stopped_at)}`;
  return estimated_end_at === null ? null : `about ${showTime(estimated_end_at)}`;
}

/** Shows how it goes until it ends; Ctrl-C ends the watching, not the operation. */
export async function watchOperation(api: Client, id: string): Promise<OperationDetail> {
  let operation = await api.getOperation({ id });
  const bar = createProgressBar(operation.kind === "replay" ? "replaying" : "dropping", { least: 1 });
  const { signal, release } = untilInterrupted();
  let fault = "";
  try {
    while (operation.state === "running" && !signal.aborted) {
      const done = Math.round(operation.progress * operation.total);
      bar.show({ done, total: operation.total }, fault === "" ? noteOf(operation) : fault);
      await sleep(LOOK_MS, signal);
      try {
        operation = await api.getOperation({ id });
        fault = "";
      } catch (error) {
        if (!mayPass(error)) throw error;
        fault = "no answer, trying again";
      }
    }
  } finally {
    bar.end();
    release();
  }
  if (signal.aborted && operation.state === "running") {
    note(
      "Not stopped: servers and workers go on with it. To see it again, or to go on where none of them runs:\n" +
        `  ukemi operations show ${id} --watch`,
    );
  }
  if (operation.state !== "done" || operation.counts.dead > 0) process.exitCode = EXIT.failure;
  return operation;
}

function noteOf({ counts, waits_for }: OperationDetail): string {
  const died = counts.dead > 0 ? `${counts.dead} died again` : "";
  return [died, waits_for ?? ""].filter((part) => part !== "").join("  ");
}
