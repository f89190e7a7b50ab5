// One job in words, for a terminal.
import type { Act, Attempt, JobDetail } from "../client/client.ts";
import { briefly } from "./effect-words.ts";
import { showAgo, showTime, showUntil } from "./moment.ts";
import { framesOf } from "./stack.ts";
import { clean } from "./width.ts";

const STACK_LINES = 8;

/** Everything that helps to find the cause. */
export function describeJob(job: JobDetail): string {
  const facts: [string, string | null][] = [
    ["job", `${job.id}  ${job.state}${job.death === null ? "" : ` (${job.death})`}${since(job.finished_at)}`],
    ["handler", `${job.handler}  in the queue ${job.queue}`],
    ["event", job.event_id === null ? null : `${job.event_id}  ${job.type} from ${job.source}`],
    ["received", job.received_at === null ? null : `${showTime(job.received_at)}  as ${job.event}`],
    ["request", job.request_id],
    ["body", job.has_body ? null : `${goneHow(job)}: it can be dropped, not replayed`],
    ["tenant", job.tenant],
    ...job.refs.map((ref): [string, string] => ["ref", `${ref.kind} ${ref.id}`]),
    ["outcome", outcomeOf(job)],
    ["tries", triesOf(job)],
    ["next", nextOf(job)],
    ["key", job.key === null ? null : `${job.key}  (its jobs run one after the other)`],
    ["worker", job.worker],
    ...job.effects.map((effect): [string, string] => ["effect", briefly(effect)]),
    ["error", job.error_class === null ? null : `${job.error_class}: ${job.error_message ?? ""}`],
  ];
  return [
    ...facts.flatMap(([name, text]) => (text === null ? [] : [line(name, text)])),
    ...timelineOf(job),
  ].join("\n");
}

function line(name: string, text: string): string {
  return `${name.padEnd(10)} ${clean(text)}`;
}

function since(time: string | null): string {
  return time === null ? "" : ` since ${showTime(time)}, ${showAgo(time)}`;
}

function outcomeOf({ outcome }: JobDetail): string | null {
  if (outcome === null) return null;
  const ours = [
    ...(outcome.billing_id === null ? [] : [`billing ${outcome.billing_id}`]),
    ...(outcome.office_id === null ? [] : [`office ${outcome.office_id}`]),
  ];
  return [outcome.status, ...ours].join("  ");
}

function triesOf({ attempts, max_attempts, recoveries, revivals }: JobDetail): string {
  return [
    `${attempts} of ${max_attempts}`,
    ...(recoveries > 0 ? [`its process died ${times(recoveries)}`] : []),
    ...(revivals > 0 ? [`revived by the sender ${times(revivals)}`] : []),
  ].join(", ");
}

/** What it waits for, or since when it is at work. */
function nextOf({ state, attempts, run_at, started_at }: JobDetail): string | null {
  switch (state) {
    case "scheduled":
      return `${attempts > 0 ? "tried again" : "due"} at ${showTime(run_at)}, ${showUntil(run_at)}`;
    case "ready":
      return `a worker takes it as soon as one is free; due since ${showTime(run_at)}`;
    case "waiting":
      return "waits for an earlier job of the same key";
    case "running":
      return started_at === null ? null : `at work since ${showTime(started_at)}, ${showAgo(started_at)}`;
    case "done":
    case "dead":
    case "cancelled":
      return null;
  }
}

const times = (count: number) => (count === 1 ? "once" : `${count} times`);

/** Tries and what was done to the job, in the order in which they happened. */
function timelineOf({ tries, acts }: JobDetail): string[] {
  const printed = new Map<string, number>();
  // a death is said by the try that it ended
  const deaths = tries.filter((attempt) => attempt.outcome === "dead").map(({ ended_at }) => ended_at);
  const told = ({ action, at }: Act) =>
    action === "job.dead" && deaths.some((death) => Math.abs(msOf(death) - msOf(at)) < 1000);
  return [
    ...tries.map((attempt) => ({ at: attempt.ended_at, show: () => describeTry(attempt, printed) })),
    ...acts.filter((act) => !told(act)).map((act) => ({ at: act.at, show: () => describeAct(act) })),
  ]
    .toSorted((left, right) => msOf(left.at) - msOf(right.at))
    .flatMap(({ show }) => ["", ...show()]);
}

const msOf = (time: string) => new Date(time).getTime();

function describeAct({ at, actor, action, reason }: Act): string[] {
  const act = action.replace(/^job\./, "");
  return [clean(`${act}  ${showTime(at)}  by ${actor}${reason === null ? "" : `: ${reason}`}`)];
}

/** `printed` holds the stacks that were shown, by their text, with the try that they were shown for. */
function describeTry(attempt: Attempt, printed: Map<string, number>): string[] {
  const { number, error_class, error_message, error_stack, ended_at } = attempt;
  return [
    clean(`try ${number}  ${showTime(ended_at)}  ${endOf(attempt)}`),
    ...(error_class === null ? [] : [clean(`      ${error_class}: ${error_message ?? ""}`)]),
    ...describeStack(framesOf(error_stack ?? ""), number, printed),
  ];
}

function describeStack(frames: readonly string[], number: number, printed: Map<string, number>): string[] {
  if (frames.length === 0) return [];
  const text = frames.join("\n");
  const before = printed.get(text);
  if (before !== undefined) return [`        at the same place as in try ${before}`];
  printed.set(text, number);
  return [
    ...frames.slice(0, STACK_LINES).map((frame) => clean(`        ${frame}`)),
    ...(frames.length > STACK_LINES ? [`        … ${frames.length - STACK_LINES} more lines: --json`] : []),
  ];
}

/** How a try ended, in words. */
export function endOf({ outcome, duration_ms }: Attempt): string {
  const took = duration_ms === null ? "" : ` in ${Math.round(duration_ms)} ms`;
  switch (outcome) {
    case "done":
      return `done${took}`;
    case "retry":
      return `failed${took}, tried again`;
    case "dead":
      return `failed${took}, dead`;
    case "returned":
      return "given back";
    case "not_yet":
      return "not yet";
    case "crashed":
      return "crashed";
  }
}

function goneHow({ body_erased_at: at }: JobDetail): string {
  return at === null ? "gone" : `erased on ${showTime(new Date(at))}`;
}
