// Keeps refused requests with their diagnosis, without letting a flood of them become load on the database.
import type { Rejection } from "../storage/rejections.ts";

export interface Quarantine {
  /** Takes the rejection in; over the rate it is only counted. */
  keep(rejection: Rejection): void;
  /** Writes what is held. */
  stop(): Promise<void>;
}

export interface QuarantineOptions {
  readonly write: (rejections: readonly Rejection[]) => Promise<void>;
  /** How many are written in one interval at the most. */
  readonly perInterval: number;
  readonly intervalMs: number;
  readonly onFault?: (error: unknown) => void;
  /** Called with the number that was not kept in an interval. */
  readonly onDropped?: (count: number) => void;
}

/** The largest part of a refused body that is kept. */
export const BODY_SAMPLE_BYTES = 4096;

/** Collects rejections and writes them together, once an interval. */
export function createQuarantine(options: QuarantineOptions): Quarantine {
  let held: Rejection[] = [];
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  function flush(): Promise<void> {
    const rejections = held;
    held = [];
    if (dropped > 0) options.onDropped?.(dropped);
    dropped = 0;
    clearTimeout(timer);
    timer = undefined;
    if (rejections.length > 0) {
      writing = writing
        .then(() => options.write(rejections))
        .catch((error: unknown) => options.onFault?.(error));
    }
    return writing;
  }

  return {
    keep(rejection) {
      if (held.length >= options.perInterval) dropped += 1;
      else
        held.push({
          ...rejection,
          bodySample: Buffer.from(rejection.bodySample.subarray(0, BODY_SAMPLE_BYTES)),
        });
      timer ??= setTimeout(() => void flush(), options.intervalMs).unref();
    },
    stop: flush,
  };
}
