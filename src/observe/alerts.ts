// What a person should know at once: a line in the log, and the application's own hook.
import { keepError } from "../work/kept-error.ts";
import type { Logger } from "./log.ts";

/** What a person should know at once. */
export type Alert = DeadLetterAlert | VolumeAlert;

/** A dead letter: a job gave up. Carries no content of the event, and no error text that was not redacted. */
export interface DeadLetterAlert {
  readonly kind: "dead_letter";
  readonly job: string;
  readonly handler: string;
  readonly queue: string;
  /** The sender's id of the event; null for tasks. */
  readonly eventId: string | null;
  readonly tenant: string | null;
  /** `exhausted`, `terminal`, `crashed` or `overdue`. */
  readonly death: string;
  readonly errorClass: string;
  readonly message: string;
}

/** Events of a type came more or less often than is usual at this hour of the week, or no longer come at all. */
export interface VolumeAlert {
  readonly kind: "volume_unusual";
  readonly source: string;
  readonly type: string;
  readonly volume: "high" | "low" | "silent";
  /** The beginning of the hour (UTC); of a silence, of the first hour without an event. */
  readonly hour: string;
  readonly received: number;
  /** From this to the next is usual. */
  readonly expectedLow: number;
  readonly expectedHigh: number;
}

/** Logs the alert and calls the hook; what the hook throws is logged, and hurts nobody. */
export function createAlerts(
  logger: Logger,
  hook: ((alert: Alert) => unknown) | undefined,
): (alert: Alert) => void {
  return (alert) => {
    logAlert(logger, alert);
    if (!hook) return;
    // a hook that throws at once and one that rejects are the same mistake
    void (async () => hook(alert))().catch((error: unknown) =>
      logger.error({ error: keepError(error).message }, "onAlert failed"),
    );
  };
}

function logAlert(logger: Logger, alert: Alert): void {
  if (alert.kind === "volume_unusual") {
    return logger.warn(
      {
        alert: alert.kind,
        source: alert.source,
        event_type: alert.type,
        volume: alert.volume,
        hour: alert.hour,
        received: alert.received,
        expected_low: alert.expectedLow,
        expected_high: alert.expectedHigh,
      },
      "unusual volume",
    );
  }
  logger.error(
    {
      alert: alert.kind,
      job: alert.job,
      handler: alert.handler,
      queue: alert.queue,
      event_id: alert.eventId ?? undefined,
      tenant: alert.tenant ?? undefined,
      death: alert.death,
      error_class: alert.errorClass,
      error_message: alert.message,
    },
    "dead letter",
  );
}
