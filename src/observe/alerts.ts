// What a person should know at once: a line in the log, and the application's own hook.
import { keepError } from "../work/kept-error.ts";
import type { Logger } from "./log.ts";

/** A dead letter: a job gave up. Carries no content of the event, and no error text that was not redacted. */
export interface Alert {
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

/** Logs the alert and calls the hook; what the hook throws is logged, and hurts nobody. */
export function createAlerts(
  logger: Logger,
  hook: ((alert: Alert) => unknown) | undefined,
): (alert: Alert) => void {
  return (alert) => {
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
    if (!hook) return;
    // a hook that throws at once and one that rejects are the same mistake
    void (async () => hook(alert))().catch((error: unknown) =>
      logger.error({ error: keepError(error).message }, "onAlert failed"),
    );
  };
}
