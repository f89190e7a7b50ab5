// Structured logs: one JSON line per unit of work, with the same field names everywhere, and no secrets.
import pino, { type Logger as PinoLogger } from "pino";
import type { Receipt } from "../inbox/receipt.ts";
import { maskAddress } from "../network.ts";
import type { Report } from "../work/execute.ts";
import { standardOutput } from "./standard-output.ts";

export type Logger = PinoLogger;

/** The net below our own care: whatever carries such a name is never written. */
const REDACT = ["authorization", "cookie", "password", "secret", "secrets", "token", "signature"].flatMap(
  (name) => [name, `*.${name}`],
);

const BASE = { app: "ukemi" };
const BASE_TOLD = JSON.stringify(BASE).slice(1, -1);

/** Where our own loggers write. */
const outputs = new WeakMap<Logger, Output>();

interface Output {
  write(line: string): void;
}

/** Makes a logger that writes JSON lines to standard output, or to the given stream. */
export function createLogger(level: string, stream?: Output): Logger {
  const output = stream ?? standardOutput();
  const logger = pino(
    {
      level,
      base: BASE,
      timestamp: () => `,"time":"${isoNow()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACT, censor: "[redacted]" },
    },
    output,
  );
  outputs.set(logger, output);
  return logger;
}

/** The fields of a wide line: names that are ours, texts and numbers. */
type WideLine = Readonly<Record<string, string | number | undefined>>;

/**
 * Writes a wide line as the logger would. To look for secrets inside every text and number costs more than all the rest of
 * the line: where the logger is ours, it is written without. Somebody else's keeps its own rules.
 */
function writeWideLine(logger: Logger, level: Level, fields: WideLine, msg: "webhook" | "job"): void {
  const output = outputs.get(logger);
  if (!output) return logger[level](fields, msg);
  const told = JSON.stringify(fields).slice(1, -1);
  output.write(`{"level":"${level}","time":"${isoNow()}",${BASE_TOLD},${told},"msg":"${msg}"}\n`);
}

type Level = "debug" | "info" | "warn" | "error";

let shownMs = 0;
let shown = "";

/** Lines come in groups: most are said in the same millisecond as the one before. */
function isoNow(): string {
  const ms = Date.now();
  if (ms !== shownMs) {
    shownMs = ms;
    shown = new Date(ms).toISOString();
  }
  return shown;
}

/** Writes the one wide line of a delivery: what was refused is a warning, what we could not do is an error. */
export function logReceipt(logger: Logger, receipt: Receipt): void {
  const level = levelOf(receipt);
  if (!logger.isLevelEnabled(level)) return;
  writeWideLine(
    logger,
    level,
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
    },
    "webhook",
  );
}

/** Writes the one wide line of a try at a job. */
export function logTry(
  logger: Logger,
  { job, outcome, durationMs, worker, traceId, death, error, effect }: Report,
): void {
  const level = TRY_LEVELS[outcome];
  if (!logger.isLevelEnabled(level)) return;
  writeWideLine(
    logger,
    level,
    {
      job: job.id,
      handler: job.handler,
      effect,
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
    },
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

function levelOf({ result, isNews }: Receipt): Level {
  if (isNews === false) return "debug";
  if (result === "error") return "error";
  return result.startsWith("rejected") ? "warn" : "info";
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100;
}
