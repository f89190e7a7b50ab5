// One job in words, for a terminal.
import type { ShownJob } from "../storage/dead-letters.ts";
import { showAgo, showTime } from "./moment.ts";
import { clean } from "./width.ts";

const STACK_LINES = 8;

/** Everything that helps to find the cause. */
export function describeJob(job: ShownJob): string {
  const facts: [string, string | null][] = [
    ["job", `${job.id}  ${job.state}${job.death === null ? "" : ` (${job.death})`}${since(job.finished_at)}`],
    ["handler", `${job.handler}  in the queue ${job.queue}`],
    ["event", job.event_id === null ? null : `${job.event_id}  ${job.type} from ${job.source}`],
    ["received", job.received_at === null ? null : `${showTime(job.received_at)}  as ${job.event}`],
    ["request", job.request_id],
    ["body", job.has_body ? null : "gone: it can be dropped, not replayed"],
    ["tenant", job.tenant],
    ...job.refs.map((ref): [string, string] => ["ref", `${ref.kind} ${ref.id}`]),
    ["outcome", outcomeOf(job)],
    ["tries", `${job.attempts}, ${job.recoveries} of its workers died, revived ${job.revivals} times`],
    ["error", job.error_class === null ? null : `${job.error_class}: ${job.error_message ?? ""}`],
  ];
  return [
    ...facts.flatMap(([name, text]) => (text === null ? [] : [line(name, text)])),
    ...job.tries.flatMap((attempt) => ["", ...describeTry(attempt)]),
    ...(job.acts.length > 0 ? [""] : []),
    ...job.acts.map(({ at, actor, action, reason }) =>
      clean(`${showTime(at)}  ${action} by ${actor}${reason === null ? "" : `: ${reason}`}`),
    ),
  ].join("\n");
}

function line(name: string, text: string): string {
  return `${name.padEnd(10)} ${clean(text)}`;
}

function since(time: Date | null): string {
  return time === null ? "" : ` since ${showTime(time)}, ${showAgo(time)}`;
}

function outcomeOf({ outcome }: ShownJob): string | null {
  if (outcome === null) return null;
  const ours = [
    ...(outcome.billing_id === null ? [] : [`billing ${outcome.billing_id}`]),
    ...(outcome.office_id === null ? [] : [`office ${outcome.office_id}`]),
  ];
  return [outcome.status, ...ours].join("  ");
}

function describeTry(attempt: ShownJob["tries"][number]): string[] {
  const { number, outcome, error_class, error_message, error_stack, ended_at, duration_ms } = attempt;
  const took = duration_ms === null ? "" : ` after ${Math.round(duration_ms)} ms`;
  // the first lines of a stack repeat the message
  const stack = (error_stack ?? "").split("\n").filter((text) => /^\s*at /.test(text));
  return [
    clean(`try ${number}  ${showTime(ended_at)}  ${outcome}${took}`),
    ...(error_class === null ? [] : [clean(`      ${error_class}: ${error_message ?? ""}`)]),
    ...stack.slice(0, STACK_LINES).map((text) => clean(`        ${text.trim()}`)),
    ...(stack.length > STACK_LINES ? [`        … ${stack.length - STACK_LINES} more lines: --json`] : []),
  ];
}
