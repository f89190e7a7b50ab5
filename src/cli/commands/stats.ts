// `ukemi stats`: how many events came, of which type, what became of them, and what was unusual.
import { Command } from "commander";
import type { Calls, HourCount } from "../../client/client.ts";
import { listCommand } from "../list.ts";
import { showAgo, showSpan, showTime } from "../moment.ts";

const BAR = 10;

export function statsCommand(): Command {
  return new Command("stats")
    .description("Count events by type and outcome, and see what was unusual.")
    .addCommand(
      listCommand({
        name: "types",
        call: "countTypes",
        description: "Count events by type and outcome; of the last 24 hours where nothing else is said.",
        row: (type) => ({
          source: type.source,
          type: type.type,
          received: String(type.received),
          success: String(type.success),
          failed: String(type.failed),
          pending: String(type.pending),
          skipped: String(type.skipped),
          unrouted: String(type.unrouted),
          "success %": type.success_share === null ? "" : (type.success_share * 100).toFixed(1),
          last: showAgo(type.last_received_at),
        }),
        table: { cut: ["source", "type"], optional: ["source", "skipped", "success %", "last"] },
        empty: "No events were counted in this time.",
        below: (_, counted) => countedOf(counted),
      }),
      { isDefault: true },
    )
    .addCommand(
      listCommand({
        name: "hours",
        call: "countHours",
        description: "Count events by hour (UTC), type and outcome.",
        row: (hour, hours) => ({
          hour: showTime(hour.hour).slice(0, 16),
          source: hour.source,
          type: hour.type,
          received: String(hour.received),
          "": barOf(hour, hours),
          success: String(hour.success),
          failed: String(hour.failed),
          pending: String(hour.pending),
          unrouted: String(hour.unrouted),
        }),
        table: { cut: ["source", "type"], optional: ["source", "unrouted", "pending"] },
        empty: "No events were counted in this time.",
        below: (_, counted) => countedOf(counted),
      }),
    )
    .addCommand(
      listCommand({
        name: "anomalies",
        call: "listAnomalies",
        description: "List hours in which a type came more or less often than usual, or fell silent.",
        row: (anomaly) => ({
          since: showTime(anomaly.hour).slice(0, 16),
          source: anomaly.source,
          type: anomaly.type,
          kind: anomaly.kind,
          received: String(anomaly.received),
          usual: `${Math.round(anomaly.expected_low)} to ${Math.round(anomaly.expected_high)}`,
          lasted:
            anomaly.ended_at === null ? "it lasts" : showSpan(msBetween(anomaly.hour, anomaly.ended_at)),
        }),
        table: { cut: ["source", "type"], optional: ["source"] },
        empty: "Nothing unusual was noticed.",
      }),
    );
}

/** The counts lag behind: how far they go. */
function countedOf({ counted_until: until, hours_to_count: hours }: Counted): string {
  if (until === null) return "Nothing was counted yet: a server or worker counts about once a minute.";
  const rest = hours === 0 ? "" : `; ${hours} hour${hours === 1 ? " is" : "s are"} still to be counted`;
  return `Counted until ${showTime(until)}${rest}.`;
}

type Counted = Pick<Calls["countTypes"]["output"], "counted_until" | "hours_to_count">;

const msBetween = (from: string, until: string) => new Date(until).getTime() - new Date(from).getTime();

/** How the hour compares with the busiest of its type. */
function barOf({ source, type, received }: HourCount, hours: readonly HourCount[]): string {
  const same = hours.filter((hour) => hour.source === source && hour.type === type);
  const most = Math.max(1, ...same.map((hour) => hour.received));
  return "▇".repeat(Math.round((received / most) * BAR));
}
