// A task that is asked for: checked, and made into a job.
import { UkemiError } from "../errors.ts";
import type { NewTask } from "../storage/enqueue.ts";
import type { Handler } from "./handler.ts";

export interface EnqueueOptions {
  /** The time at which it is due. @default now */
  readonly runAt?: Date;
  /** Or how many milliseconds from now, on the database's clock. */
  readonly delayMs?: number;
  /** Jobs of one key run one at a time. */
  readonly key?: string;
  /** And in the order in which they were asked for. @default false */
  readonly ordered?: boolean;
  /** A second job with the same task, tenant and dedupe key is the first one. */
  readonly dedupe?: string;
  readonly tenant?: string;
  /** @default that of the task */
  readonly priority?: number;
}

/** A job that was made, or the one that was there before. */
export interface Enqueued {
  readonly id: string;
  readonly duplicate: boolean;
}

const PAYLOAD_BYTES_MAX = 1024 * 1024;
const LAST_MS = Date.UTC(9999, 11, 31);
const DELAY_MS_MAX = 100 * 366 * 86_400_000;

/** Checks what was asked for; the database would say it less clearly, and fail the caller's transaction. */
export function readTask(handler: Handler, payload: unknown, options: EnqueueOptions = {}): NewTask {
  const wrong = (what: string) =>
    new UkemiError("invalid_option", `enqueue(${JSON.stringify(handler.name)}): ${what}.`);
  const { runAt, delayMs = 0, key, ordered = false, dedupe, tenant, priority = handler.priority } = options;
  const text = toJson(payload);
  if (text === undefined) throw wrong("the payload cannot be written as JSON");
  if (Buffer.byteLength(text) > PAYLOAD_BYTES_MAX) {
    throw wrong(`the payload is larger than ${PAYLOAD_BYTES_MAX} bytes: store it, and pass its id`);
  }
  for (const [name, value] of Object.entries({ key, dedupe, tenant })) {
    if (value !== undefined && !isName(value)) {
      throw wrong(`${name} must be 1 to 255 bytes without control characters`);
    }
  }
  if (runAt !== undefined && !isTime(runAt)) throw wrong("runAt must be a Date between 1970 and 9999");
  if (typeof ordered !== "boolean") throw wrong("ordered must be true or false");
  if (runAt && options.delayMs !== undefined) throw wrong("pass either runAt or delayMs");
  if (typeof delayMs !== "number" || !(delayMs >= 0 && delayMs <= DELAY_MS_MAX)) {
    throw wrong("delayMs must be a number of milliseconds, from 0 to a hundred years");
  }
  if (ordered && key === undefined) throw wrong("ordered needs a key");
  if (!Number.isInteger(priority) || Math.abs(priority) > 32_767) {
    throw wrong("priority must be a whole number from -32767 to 32767");
  }
  return {
    handler: handler.name,
    queue: handler.queue,
    priority,
    maxAttempts: handler.policy.maxAttempts,
    policy: handler.policy.name,
    tenant: tenant ?? null,
    key: key === undefined ? null : tenant === undefined ? key : `${tenant}/${key}`, // one tenant's never holds up another's
    ordered,
    dedupeKey: dedupe ?? null,
    runAt: runAt ?? null,
    delayMs,
    payload: text,
  };
}

function isTime(value: unknown): value is Date {
  return value instanceof Date && value.getTime() >= 0 && value.getTime() <= LAST_MS;
}

function toJson(payload: unknown): string | undefined {
  try {
    return JSON.stringify(payload === undefined ? null : payload);
  } catch {
    return undefined;
  }
}

function isName(value: unknown): boolean {
  return (
    typeof value === "string" &&
    value !== "" &&
    Buffer.byteLength(value) <= 255 &&
    !/[\p{Cc}\p{Cs}]/u.test(value)
  );
}
