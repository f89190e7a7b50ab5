// One effect in words, for a terminal.
import type { EffectAttempt, EffectDetail } from "../client/client.ts";
import { becameOf, briefly } from "./effect-words.ts";
import { showTime } from "./moment.ts";
import { clean } from "./width.ts";

/** Everything that helps to find out what happened. */
export function describeEffect(effect: EffectDetail): string {
  const facts: [string, string | null][] = [
    ["effect", `${effect.id}  ${effect.kind}, ${effect.state}`],
    ["to", effect.target],
    ["amount", effect.amount === null ? null : `${effect.amount} ${effect.currency}`],
    ["mail", effect.template === null ? null : `${effect.template}, in ${effect.locale}`],
    ["what", becameOf(effect)],
    ["intended", `${showTime(effect.planned_at)}${effect.handler === null ? "" : ` by ${effect.handler}`}`],
    ["event", effect.event === null ? null : `${effect.event_id ?? ""} (ours: ${effect.event})`],
    ["tenant", effect.tenant],
    ["key", `${effect.dedupe}  (the same act is never done twice)`],
    ["through", effect.kind === "call" ? null : effect.destination],
    ["calls", callsOf(effect)],
    ["job", effect.job === null ? null : `${effect.job}  (ukemi jobs show ${effect.job})`],
    ["after", effect.after],
    ["content", contentOf(effect)],
    ["receipt", effect.receipt === null ? null : JSON.stringify(effect.receipt)],
    ...effect.followers.map((follower): [string, string] => ["then", briefly(follower)]),
  ];
  return [
    ...facts.flatMap(([name, words]) => (words === null ? [] : [clean(`${name.padEnd(10)} ${words}`)])),
    ...timelineOf(effect),
  ].join("\n");
}

/** Null where there is nothing to say of it. */
function contentOf({ content, content_removed_at: at }: EffectDetail): string | null {
  const when = at === null ? "" : ` ${showTime(at)}`;
  switch (content) {
    case "kept":
      return null;
    case "sealed":
      return "sealed, and the key is not among bodyKeys (UKEMI_BODY_KEYS) here";
    case "altered":
      return "altered: it is not what was stored, and is not carried out";
    case "pruned":
      return `removed by retention${when}: what was sent, and what the calls came to`;
    case "erased":
      return `erased by an operator${when}: what was sent, and to whom`;
  }
}

function callsOf({ attempt, uncertainties, on_uncertain }: EffectDetail): string {
  if (attempt === 0) return "none yet";
  if (uncertainties === 0) return String(attempt);
  const policy = on_uncertain === "hold" ? "a person decides then" : "it is made again then";
  return `${attempt}, of which ${uncertainties} ended without anybody knowing how; ${policy}`;
}

/** Calls and what people did, in the order in which they happened. */
function timelineOf({ attempts, acts }: EffectDetail): string[] {
  return [
    ...attempts.map((call) => ({ at: call.started_at, lines: describeCall(call) })),
    ...acts.map(({ at, actor, action, reason }) => ({
      at,
      lines: [`${action}  ${showTime(at)}  by ${actor}${reason === null ? "" : `: ${reason}`}`],
    })),
  ]
    .toSorted((left, right) => new Date(left.at).getTime() - new Date(right.at).getTime())
    .flatMap(({ lines }) => ["", ...lines.map(clean)]);
}

function describeCall(call: EffectAttempt): string[] {
  const { number, started_at, error_class, error_message, answer, repeats } = call;
  const mark = repeats ? "  (a repetition: an earlier call may have been heard)" : "";
  return [
    `call ${number}  ${showTime(started_at)}  ${endOf(call)}${mark}`,
    ...(error_class === null ? [] : [`      ${error_class}: ${error_message ?? ""}`]),
    ...(answer === null ? [] : [`      ${JSON.stringify(answer)}`]),
  ];
}

function endOf({ result, duration_ms }: EffectAttempt): string {
  const took = duration_ms === null ? "" : ` in ${Math.round(duration_ms)} ms`;
  switch (result) {
    case "done":
      return `done${took}`;
    case "again":
      return `did not happen${took}, may later`;
    case "failed":
      return `refused${took}`;
    case "uncertain":
      return `nobody knows how it ended${took.replace(" in", ", after")}`;
    case "blocked":
      return `the destination refused us${took}`;
    case null:
      return "no end was written down";
  }
}
