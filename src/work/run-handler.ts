// Running a handler until it ends, its time is over, or it is stopped.
import type { Job } from "../storage/claim.ts";
import { createTrail, nextTrace, readContent } from "./context.ts";
import type { Handler } from "./handler.ts";
import { asError } from "./kept-error.ts";
import { TimeLimit } from "./outcome.ts";

/** One run of a handler, and what it says beside its writes. */
export interface HandlerRun {
  readonly job: Job;
  readonly handler: Handler;
  readonly limitMs: number;
  /** Fired where the handler must stop: for no fault of its own, or because its time is over. */
  readonly stop: AbortController;
  readonly trace: { readonly traceparent: string; readonly traceId: string };
  readonly trail: ReturnType<typeof createTrail>;
}

export function prepareRun(job: Job, handler: Handler, limitMs: number, stop: AbortController): HandlerRun {
  return { job, handler, limitMs, stop, trace: nextTrace(job), trail: createTrail(job) };
}

/**
 * Rejects with what the handler threw, with TimeLimit, or with the reason of the stop: `onStop` then closes its transaction,
 * so that a handler which goes on can write nothing more.
 */
export async function runHandler(run: HandlerRun, tx: unknown, onStop: () => void): Promise<void> {
  const { job, handler, limitMs, stop, trace, trail } = run;
  const { signal } = stop;
  const timer = setTimeout(
    () => stop.abort(new TimeLimit(`the handler did not end within ${limitMs} ms`)),
    limitMs,
  );
  try {
    const content = readContent(job, trail.link);
    const context = { ...content, tx, audit: trail.audit, signal, traceparent: trace.traceparent };
    await untilAborted(async () => handler.run(context as never), signal, onStop);
  } catch (error) {
    throw asError(error);
  } finally {
    clearTimeout(timer);
  }
}

/** Listens before the handler can: what that does when it hears of the stop is refused already. */
async function untilAborted(
  work: () => Promise<unknown>,
  signal: AbortSignal,
  onStop: () => void,
): Promise<void> {
  signal.throwIfAborted();
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => {
      onStop();
      reject(signal.reason as Error);
    };
    signal.addEventListener("abort", onAbort);
  });
  try {
    await Promise.race([work(), aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort!);
  }
  signal.throwIfAborted();
}
