// What a person should know at once: a line in the log, and the application's own hook.
import { keepError } from "../work/kept-error.ts";
import type { Logger } from "./log.ts";

/** What a person should know at once. Carries no content of an event, and no error text that was not redacted. */
export type Alert = DeadLetterAlert | BodySealedAlert;

interface JobAlert {
  readonly job: string;
  readonly handler: string;
  readonly queue: string;
  /** The sender's id of the event; null for tasks. */
  readonly eventId: string | null;
  readonly tenant: string | null;
  readonly message: string;
}

/** A job waits because this process has no key for its event's body. Told once for each data key. */
interface BodySealedAlert extends JobAlert {
  readonly kind: "body_sealed";
}

/** A dead letter: a job gave up. */
interface DeadLetterAlert extends JobAlert {
  readonly kind: "dead_letter";
  /** `exhausted`, `terminal`, `crashed` or `overdue`. */
  readonly death: string;
  readonly errorClass: string;
}

const TITLES = {
  dead_letter: "dead letter",
  body_sealed: "a sealed body cannot be opened",
} as const satisfies Record<Alert["kind"], string>;

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
        ...(alert.kind === "dead_letter" ? { death: alert.death, error_class: alert.errorClass } : {}),
        error_message: alert.message,
      },
      TITLES[alert.kind],
    );
    if (!hook) return;
    // a hook that throws at once and one that rejects are the same mistake
    void (async () => hook(alert))().catch((error: unknown) =>
      logger.error({ error: keepError(error).message }, "onAlert failed"),
    );
  };
}
