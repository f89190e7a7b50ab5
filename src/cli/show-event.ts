// One event in words.
import type { EventDetail } from "../client/client.ts";
import { showAgo, showTime } from "./moment.ts";
import { briefly } from "./effect-words.ts";
import { endOf } from "./show-job.ts";
import { clean } from "./width.ts";

const BODY_LINES = 60;

/** The event with everything that is known of it. */
export function describeEvent(event: EventDetail): string {
  const { outcome } = event;
  const ours = [
    ...(outcome?.billing_id ? [`billing ${outcome.billing_id}`] : []),
    ...(outcome?.office_id ? [`office ${outcome.office_id}`] : []),
  ];
  const facts: readonly (readonly [string, string])[] = [
    ["event", `${event.event_id} (ours: ${event.id})`],
    [
      "type",
      `${event.type}, source ${event.source}${event.account === "" ? "" : `, account ${event.account}`}`,
    ],
    ["received", `${showTime(event.received_at)}, ${showAgo(event.received_at)}, by ${event.origin}`],
    ["status", `${event.status}${event.error_message === null ? "" : `: ${event.error_message}`}`],
    ...(event.tenant === null ? [] : [["tenant", event.tenant] as const]),
    ...(ours.length === 0 ? [] : [["ours", ours.join(", ")] as const]),
    ...(event.refs.length === 0
      ? []
      : [["refs", event.refs.map(({ kind, id }) => `${kind} ${id}`).join(", ")] as const]),
    ["request", `${event.request_id ?? "unknown"}${event.livemode ? "" : ", test mode"}`],
  ];
  return [
    ...facts.map(([name, text]) => clean(`${name.padEnd(10)}${text}`)),
    ...jobsOf(event),
    ...event.effects.map((effect) => clean(`effect    ${briefly(effect)}`)),
    "",
    ...bodyOf(event),
  ].join("\n");
}

function jobsOf({ jobs }: EventDetail): string[] {
  if (jobs.length === 0) return ["jobs      none"];
  return jobs.flatMap((job) => [
    clean(
      `job       ${job.id} ${job.handler} (${job.queue}): ${job.state}, try ${job.attempts} of ${job.max_attempts}`,
    ),
    ...job.tries.map((tried) =>
      clean(
        `            ${showTime(tried.ended_at)} try ${tried.number} ${endOf(tried)}${tried.error_class === null ? "" : `: ${tried.error_class}: ${tried.error_message ?? ""}`}`,
      ),
    ),
  ]);
}

/** JSON is set out in lines; anything else is shown as it is. */
function bodyOf({ body, body_state, body_encoding, body_bytes, body_cut }: EventDetail): string[] {
  if (body === null) return [`The body is ${body_state}.`];
  const lines = (body_encoding === "utf8" ? setOut(body) : body).split("\n").map(clean);
  const rest = lines.length - BODY_LINES;
  return [
    `body, ${body_bytes} bytes${body_cut ? ", of which the beginning is shown" : ""}${body_encoding === "base64" ? ", as base64" : ""}:`,
    ...lines.slice(0, BODY_LINES),
    ...(rest > 0 ? [`… ${rest} more lines: --json`] : []),
  ];
}

function setOut(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
