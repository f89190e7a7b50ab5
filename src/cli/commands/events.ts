// `ukemi events`: what was received, and whom it is given to.
import { Command } from "commander";
import { UkemiError } from "../../errors.ts";
import type { RoutePreview } from "../../storage/route.ts";
import {
  changeWithConsent,
  reasonOf,
  stopOnInterrupt,
  withChangeFlags,
  type ChangeFlags,
} from "../consent.ts";
import { readMoment } from "../moment.ts";
import { actor, withOperate } from "../operator.ts";
import { createProgressBar } from "../progress.ts";
import { withFlags } from "../settings.ts";
import { table } from "../table.ts";

interface RouteFlags extends ChangeFlags {
  readonly since?: string;
  readonly until?: string;
  readonly type?: string;
  readonly handler?: string;
}

export function eventsCommand(): Command {
  return new Command("events").description("Work with stored events.").addCommand(routeCommand());
}

function routeCommand(): Command {
  const command = new Command("route")
    .description("Give stored events that nobody wanted to handlers that came later.")
    .option("--since <time>", "Events received since: 2026-11-15T09:00:00Z, or 90m, 2h, 3d ago. Needed.")
    .option("--until <time>", "Events received before.")
    .option("--type <type>", "Only events of this type.")
    .option("--handler <name>", "Only for this handler; the events are then no longer unrouted for others.");
  withChangeFlags(command);
  return withFlags(command, ["database", "data"]).action(async () => {
    const flags = command.opts<RouteFlags>();
    const { since, until, type, handler } = flags;
    if (since === undefined) {
      throw new UkemiError("invalid_option", "--since must say from when on: 2026-11-15T09:00:00Z, or 3d.");
    }
    const request = {
      since: readMoment("--since", since),
      ...(until === undefined ? {} : { until: readMoment("--until", until) }),
      ...(type === undefined ? {} : { type }),
      ...(handler === undefined ? {} : { handler }),
    };
    const mandate = { actor: actor(), reason: reasonOf(flags) };
    await withOperate(command, async ({ events }) => {
      const preview = await events.previewRoute(request);
      const question = `Make ${counted(preview.jobs, "job")}?`;
      await changeWithConsent(
        flags,
        { preview, words: previewed(preview), any: preview.jobs > 0, question },
        async () => {
          const bar = createProgressBar("routing");
          const stop = stopOnInterrupt();
          try {
            const result = await events.route(request, mandate, {
              onProgress: bar.show,
              signal: stop.signal,
            });
            bar.end();
            const words = `Made ${counted(result.jobs, "job")} for ${counted(result.events, "event")}.`;
            const rest = result.stopped ? " Stopped before the end: the same command does the rest." : "";
            return { result, words: words + rest, failed: result.stopped };
          } finally {
            bar.end();
            stop.release();
          }
        },
      );
    });
  });
}

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

function previewed({ events, jobs, without_body, groups }: RoutePreview): string {
  const gone =
    without_body === 0 ? [] : [`${counted(without_body, "event")} cannot be routed: the body is gone.`];
  if (jobs === 0) return ["No handler wants an unrouted event of that time.", ...gone].join("\n");
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
