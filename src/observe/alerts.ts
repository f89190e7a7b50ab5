// What a person should know at once: a line in the log, and the application's own hook.
import { keepError } from "../work/kept-error.ts";
import type { Logger } from "./log.ts";

/**
 * What a person should know at once; `kind` says what it is about. Carries no content of an event, and no error text that
 * was not redacted.
 */
export type Alert =
  | DeadLetterAlert
  | BodySealedAlert
  | OperationAlert
  | VolumeAlert
  | EffectHeldAlert
  | DestinationAlert;

interface JobAlert {
  readonly job: string;
  readonly handler: string;
  readonly queue: string;
  /** The sender's id of the event; null for tasks. */
  readonly eventId: string | null;
  readonly tenant: string | null;
  readonly message: string;
}

/** A dead letter: a job gave up. */
export interface DeadLetterAlert extends JobAlert {
  readonly kind: "dead_letter";
  /** `exhausted`, `terminal`, `crashed` or `overdue`. */
  readonly death: string;
  readonly errorClass: string;
}

/** A job waits because this process has no key for its event's body. Told once for each data key. */
export interface BodySealedAlert extends JobAlert {
  readonly kind: "body_sealed";
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

/** Nobody knows whether an effect happened, and a person must find out. */
export interface EffectHeldAlert {
  readonly kind: "effect_held";
  readonly effect: string;
  readonly effectKind: string;
  readonly tenant: string | null;
  readonly message: string;
}

/** Nothing goes to a destination for a while: it asked for a pause, refuses us, or failed too often. Effects wait. */
export interface DestinationAlert {
  readonly kind: "destination_closed" | "destination_paused";
  readonly destination: string;
  readonly message: string;
}

/** Logs the alert and calls the hook; what the hook throws is logged, and hurts nobody. */
export function createAlerts(
  logger: Logger,
  hook: ((alert: Alert) => unknown) | undefined,
): (alert: Alert) => void {
  return (alert) => {
    const { level, words } = TITLES[alert.kind];
    logger[level]({ alert: alert.kind, ...fieldsOf(alert) }, words);
    if (!hook) return;
    // a hook that throws at once and one that rejects are the same mistake
    void (async () => hook(alert))().catch((error: unknown) =>
      logger.error({ error: keepError(error).message }, "onAlert failed"),
    );
  };
}

const TITLES: Readonly<Record<Alert["kind"], { readonly level: "warn" | "error"; readonly words: string }>> =
  {
    dead_letter: { level: "error", words: "dead letter" },
    body_sealed: { level: "error", words: "a sealed body cannot be opened" },
    operation_stopped: { level: "error", words: "an operation stopped by itself" },
    volume_unusual: { level: "warn", words: "unusual volume" },
    effect_held: { level: "error", words: "an effect is held: a person must find out whether it happened" },
    destination_closed: { level: "error", words: "a destination is closed" },
    destination_paused: { level: "warn", words: "a destination is paused" },
  };

/** What the log line says beside its title. */
function fieldsOf(alert: Alert): Record<string, unknown> {
  switch (alert.kind) {
    case "operation_stopped":
      return { operation: alert.operation, reason: alert.message };
    case "effect_held":
      return {
        effect: alert.effect,
        effect_kind: alert.effectKind,
        tenant: alert.tenant ?? undefined,
        error_message: alert.message,
      };
    case "destination_closed":
    case "destination_paused":
      return { destination: alert.destination, error_message: alert.message };
    case "volume_unusual":
      return {
        source: alert.source,
        event_type: alert.type,
        volume: alert.volume,
        hour: alert.hour,
        received: alert.received,
        expected_low: alert.expectedLow,
        expected_high: alert.expectedHigh,
      };
    case "dead_letter":
    case "body_sealed":
      return {
        job: alert.job,
        handler: alert.handler,
        queue: alert.queue,
        event_id: alert.eventId ?? undefined,
        tenant: alert.tenant ?? undefined,
        ...(alert.kind === "dead_letter" ? { death: alert.death, error_class: alert.errorClass } : {}),
        error_message: alert.message,
      };
  }
}
