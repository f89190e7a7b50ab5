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
  /** Fired where the handler must stop for no fault of its own. */
  readonly stop: AbortSignal;
  readonly trace: { readonly traceparent: string; readonly traceId: string };
  readonly trail: ReturnType<typeof createTrail>;
}

export function prepareRun(job: Job, handler: Handler, limitMs: number, stop: AbortSignal): HandlerRun {
  return { job, handler, limitMs, stop, trace: nextTrace(job), trail: createTrail(job) };
}

/**
 * Rejects with what the handler threw, with TimeLimit, or with the reason of the stop: `onStop` then closes its transaction,
 * so that a handler which goes on can write nothing more.
 */
export async function runHandler(run: HandlerRun, tx: unknown, onStop: () => void): Promise<void> {
  const { job, handler, limitMs, stop, trace, trail } = run;
  const limit = new AbortController();
  const timer = setTimeout(
    () => limit.abort(new TimeLimit(`the handler did not end within ${limitMs} ms`)),
    limitMs,
  );
  const signal = AbortSignal.any([stop, limit.signal]);
  // first in the row of listeners: what the handler does when it hears of the stop is refused already
  signal.addEventListener("abort", onStop, { once: true });
  try {
    const content = readContent(job, trail.link);
    const context = { ...content, tx, audit: trail.audit, signal, traceparent: trace.traceparent };
    await untilAborted(async () => handler.run(context as never), signal);
    stop.throwIfAborted();
  } catch (error) {
    throw asError(error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onStop); // Node keeps a combined signal alive for as long as somebody listens
  }
}

async function untilAborted(work: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    await Promise.race([work(), aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort!);
  }
}
