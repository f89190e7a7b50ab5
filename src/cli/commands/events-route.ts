// `ukemi events route`: stored events that nobody wanted, given to handlers that came later.
import { Command } from "commander";
import { UkemiError } from "../../errors.ts";
import type { Client, Routed } from "../../client/client.ts";
import {
  changeWithConsent,
  reasonOf,
  stopOnInterrupt,
  withChangeFlags,
  type ChangeFlags,
} from "../consent.ts";
import { readMoment, showTime } from "../moment.ts";
import { createProgressBar } from "../progress.ts";
import { table } from "../table.ts";
import { withApi, withTarget } from "../target.ts";
import { clean } from "../width.ts";

interface RouteFlags extends ChangeFlags {
  readonly since?: string;
  readonly until?: string;
  readonly type?: string;
  readonly handler?: string;
}

export function routeCommand(): Command {
  const command = new Command("route")
    .description("Give stored events that nobody wanted to handlers that came later.")
    .option("--since <time>", "Events received since: 2026-11-15T09:00:00Z, or 90m, 2h, 3d ago. Needed.")
    .option("--until <time>", "Events received before.")
    .option("--type <type>", "Only events of this type.")
    .option("--handler <name>", "Only for this handler; the events are then no longer unrouted for others.");
  withChangeFlags(command);
  return withTarget(command).action(async () => {
    const flags = command.opts<RouteFlags>();
    const { since, until, type, handler } = flags;
    if (since === undefined) {
      throw new UkemiError("invalid_option", "--since must say from when on: 2026-11-15T09:00:00Z, or 3d.");
    }
    const request = {
      since: readMoment("--since", since).toISOString(),
      until: until === undefined ? undefined : readMoment("--until", until).toISOString(),
      type,
      handler,
      reason: reasonOf(flags) || undefined,
    };
    await withApi(command, async (api, place) => {
      const preview = await api.routeEvents({ ...request, dry_run: true });
      const words = preview.jobs === 0 ? unwanted(request, preview) : previewed(preview);
      const question = `Make ${counted(preview.jobs, "job")}?`;
      await changeWithConsent(flags, { place, preview, words, any: preview.jobs > 0, question }, async () => {
        const result = await routeAll(api, request, preview.events);
        const words = `Made ${counted(result.jobs, "job")} for ${counted(result.events, "event")}.`;
        const rest = result.stopped ? " Stopped before the end: the same command does the rest." : "";
        return { result, words: words + rest, failed: result.stopped };
      });
    });
  });
}

type RouteRequest = Omit<Parameters<Client["routeEvents"]>[0], "after" | "dry_run">;

/** Batch after batch, until the last or Ctrl-C. */
async function routeAll(
  api: Client,
  request: RouteRequest,
  total: number,
): Promise<{ events: number; jobs: number; stopped: boolean }> {
  const bar = createProgressBar("routing");
  const stop = stopOnInterrupt();
  let events = 0;
  let jobs = 0;
  let after: string | undefined;
  try {
    do {
      const batch: Routed = await api.routeEvents({ ...request, after });
      events += batch.events;
      jobs += batch.jobs;
      after = batch.next;
      bar.show({ done: Math.min(events, total), total });
    } while (after !== undefined && !stop.signal.aborted);
    return { events, jobs, stopped: after !== undefined };
  } finally {
    bar.end();
    stop.release();
  }
}

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

const TYPES_SHOWN = 10;

/** What is there although nothing can be done with it: a mistyped pattern shows here. */
function unwanted(
  { since, until, handler }: RouteRequest,
  { without_body = 0, unrouted: types = [] }: Routed,
): string {
  const time = `since ${showTime(since)}${until === undefined ? "" : ` and before ${showTime(until)}`}`;
  const total = types.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return `There are no unrouted events ${time}.`;
  const shown = types.slice(0, TYPES_SHOWN).map(({ type, count }) => `${clean(type)} (${count})`);
  const more = types.length > TYPES_SHOWN ? [`${types.length - TYPES_SHOWN} more`] : [];
  const who = handler === undefined ? "no handler wants" : `${handler} does not want`;
  const why =
    without_body === 0
      ? `${who} ${total === 1 ? "it" : "them"}`
      : `${without_body} wanted, and the body is gone`;
  return `There ${total === 1 ? "is" : "are"} ${counted(total, "unrouted event")} ${time}, of type${types.length === 1 ? "" : "s"} ${[...shown, ...more].join(", ")}; ${why}.`;
}

function previewed({ events, jobs, without_body = 0, groups = [] }: Routed): string {
  const gone =
    without_body === 0 ? [] : [`${counted(without_body, "event")} cannot be routed: the body is gone.`];
  const rows = groups.map((group) => ({
    jobs: String(group.count),
    handler: group.handler,
    type: group.type,
  }));
  return [
    table(rows, { width: process.stdout.columns, cut: ["handler", "type"], names: ["handler"] }),
    "",
    `${counted(jobs, "job")} would be made for ${counted(events, "event")}.`,
    ...gone,
  ].join("\n");
}
