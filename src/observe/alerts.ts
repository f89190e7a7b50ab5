// What a person should know at once: a line in the log, and the application's own hook.
import { keepError } from "../work/kept-error.ts";
import type { Logger } from "./log.ts";

/** What a person should know at once; `kind` says what it is about. */
export type Alert = DeadLetterAlert | OperationAlert;

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

/** An operation stopped by itself: too many of its jobs died again. */
export interface OperationAlert {
  readonly kind: "operation_stopped";
  readonly operation: string;
  readonly name: string;
  /** The tenants of the caller who made it; null where it was bound to none. */
  readonly tenants: readonly string[] | null;
  readonly message: string;
}

/** Logs the alert and calls the hook; what the hook throws is logged, and hurts nobody. */
export function createAlerts(
  logger: Logger,
  hook: ((alert: Alert) => unknown) | undefined,
): (alert: Alert) => void {
  return (alert) => {
    logger.error(fieldsOf(alert), WORDS[alert.kind]);
    if (!hook) return;
    // a hook that throws at once and one that rejects are the same mistake
    void (async () => hook(alert))().catch((error: unknown) =>
      logger.error({ error: keepError(error).message }, "onAlert failed"),
    );
  };
}

const WORDS: Readonly<Record<Alert["kind"], string>> = {
  dead_letter: "dead letter",
  operation_stopped: "an operation stopped by itself",
};

function fieldsOf(alert: Alert): Record<string, unknown> {
  if (alert.kind === "operation_stopped") {
    return { alert: alert.kind, operation: alert.operation, reason: alert.message };
  }
  return {
    alert: alert.kind,
    job: alert.job,
    handler: alert.handler,
    queue: alert.queue,
    event_id: alert.eventId ?? undefined,
    tenant: alert.tenant ?? undefined,
    death: alert.death,
    error_class: alert.errorClass,
    error_message: alert.message,
  };
}
