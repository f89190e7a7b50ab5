// `ukemi events`: what was received, and whom it is given to.
import { Command } from "commander";
import { listCommand } from "../list.ts";
import { showAgo } from "../moment.ts";
import { showCommand } from "../show.ts";
import { describeEvent } from "../show-event.ts";
import { routeCommand } from "./events-route.ts";

export function eventsCommand(): Command {
  return new Command("events")
    .description("See what was received, and give it to handlers that came later.")
    .addCommand(
      listCommand({
        name: "list",
        call: "listEvents",
        description: "List events, newest first.",
        row: (event, events) => ({
          event: event.event_id,
          received: showAgo(event.received_at),
          status: event.status,
          source: event.source,
          type: event.type,
          ...(events.some(({ tenant }) => tenant !== null) ? { tenant: event.tenant ?? "" } : {}),
          refs: event.refs.map(({ id }) => id).join(", "),
          error: event.error_message ?? "",
        }),
        table: {
          cut: ["event", "type", "tenant", "refs", "error"],
          names: ["event"],
          optional: ["refs", "source", "tenant", "error"],
        },
        empty: "There are no events here.",
      }),
      { isDefault: true },
    )
    .addCommand(
      showCommand({
        call: "getEvent",
        description: "Show one event with its body, refs, outcome, jobs and attempts.",
        argument: "The sender's id, or ours: ukemi events lists them.",
        readsFile: true,
        describe: describeEvent,
      }),
    )
    .addCommand(routeCommand());
}
