// Structured logs: one JSON line per unit of work, with the same field names everywhere, and no secrets.
import pino, { type Logger as PinoLogger } from "pino";
import type { Receipt } from "../inbox/receipt.ts";
import { maskAddress } from "../network.ts";
import type { Report } from "../work/execute.ts";
import { standardOutput } from "./standard-output.ts";

export type Logger = PinoLogger;

/** The net below our own care: whatever carries such a name is never written. */
const SECRETS = ["authorization", "cookie", "password", "secret", "secrets", "token", "signature"];
const INSIDE = SECRETS.map((name) => `*.${name}`);
const CENSOR = "[redacted]";

/**
 * Each of our loggers again, for the wide lines: their fields are texts and numbers, and to look inside every one of them
 * for secrets costs more than the rest of the line.
 */
const flatLoggers = new WeakMap<Logger, Logger>();

/** Makes a logger that writes JSON lines to standard output, or to the given stream. */
export function createLogger(level: string, stream?: { write(line: string): void }): Logger {
  const logger = pino(
    {
      level,
      base: { app: "ukemi" },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: [...SECRETS, ...INSIDE], censor: CENSOR },
    },
    stream ?? standardOutput(),
  );
  flatLoggers.set(logger, logger.child({}, { redact: { paths: SECRETS, censor: CENSOR } }));
  return logger;
}

/** The logger for wide lines. Somebody else's keeps its own rules. */
function forWideLines(logger: Logger): Logger {
  return flatLoggers.get(logger) ?? logger;
}

type WideLine = Readonly<Record<string, string | number | undefined>>;

/** Writes the one wide line of a delivery: what was refused is a warning, what we could not do is an error. */
export function logReceipt(logger: Logger, receipt: Receipt): void {
  const level = levelOf(receipt);
  if (!logger.isLevelEnabled(level)) return;
  forWideLines(logger)[level](
    {
      request_id: receipt.requestId,
      source: receipt.source,
      result: receipt.result,
      status: receipt.status,
      duration_ms: round(receipt.durationMs),
      commit_ms: receipt.commitMs === undefined ? undefined : round(receipt.commitMs),
      body_bytes: receipt.bodyBytes,
      event_id: receipt.eventId,
      event_type: receipt.eventType,
      message_id: receipt.messageId,
      tenant: receipt.tenant,
      reason: receipt.reason,
      diagnosis: receipt.diagnosis,
      address: receipt.address === undefined ? undefined : maskAddress(receipt.address),
    } satisfies WideLine,
    "webhook",
  );
}

/** Writes the one wide line of a try at a job. */
export function logTry(
  logger: Logger,
  { job, outcome, durationMs, worker, traceId, death, error }: Report,
): void {
  const level = TRY_LEVELS[outcome];
  if (!logger.isLevelEnabled(level)) return;
  forWideLines(logger)[level](
    {
      job: job.id,
      handler: job.handler,
      queue: job.queue,
      outcome,
      attempt: job.attempt + 1,
      max_attempts: job.maxAttempts,
      recoveries: job.recoveries || undefined,
      duration_ms: round(durationMs),
      waited_ms: round(job.waitedMs),
      event_id: job.event?.eventId,
      event_type: job.event?.type,
      message_id: job.event?.id,
      tenant: job.tenant ?? undefined,
      worker,
      trace_id: traceId,
      death,
      error_class: error?.class,
      error_message: error?.message,
    } satisfies WideLine,
    "job",
  );
}

/** A death has an alert of its own, at level error. */
const TRY_LEVELS = {
  done: "info",
  not_yet: "info",
  returned: "info",
  retry: "warn",
  dead: "warn",
  lost: "warn",
} as const satisfies Record<Report["outcome"], string>;

function levelOf({ result, isNews }: Receipt): "debug" | "info" | "warn" | "error" {
  if (isNews === false) return "debug";
  if (result === "error") return "error";
  return result.startsWith("rejected") ? "warn" : "info";
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100;
}
