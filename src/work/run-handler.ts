// Running a handler until it ends, its time is over, or it is stopped.
import { createEffects, type Kinds } from "../effects/effects.ts";
import type { Job } from "../storage/claim.ts";
import type { SqlClient } from "../storage/enqueue.ts";
import { createTrail, nextTrace, readContent } from "./context.ts";
import type { Handler } from "./handler.ts";
import { asError } from "./kept-error.ts";
import { TimeLimit } from "./outcome.ts";
import type { StopSwitch } from "./stop-switch.ts";

/** One run of a handler, and what it says beside its writes. */
export interface HandlerRun {
  readonly job: Job;
  readonly handler: Handler;
  /** The effects that it can intend. */
  readonly kinds: Kinds;
  readonly limitMs: number;
  /** Fired where the handler must stop: for no fault of its own, or because its time is over. */
  readonly stop: StopSwitch;
  readonly trace: { readonly traceparent: string; readonly traceId: string };
  readonly trail: ReturnType<typeof createTrail>;
}

export function prepareRun(
  job: Job,
  handler: Handler,
  given: Pick<HandlerRun, "kinds" | "limitMs" | "stop">,
): HandlerRun {
  return { job, handler, ...given, trace: nextTrace(job), trail: createTrail(job) };
}

/** What a handler writes through: its own transaction as it knows it, and as we write into it. */
export interface Writes {
  readonly tx: unknown;
  readonly sql: SqlClient;
}

/** The same for another run in this try: what the first one said beside its writes went with them. */
export function runAgain(run: HandlerRun): HandlerRun {
  return { ...run, trail: createTrail(run.job) };
}

/**
 * Rejects with what the handler threw, with TimeLimit, or with the reason of the stop: `onStop` then closes its transaction,
 * so that a handler which goes on can write nothing more.
 */
export async function runHandler(run: HandlerRun, { tx, sql }: Writes, onStop: () => void): Promise<void> {
  const { job, handler, kinds, limitMs, stop, trace, trail } = run;
  const timer = setTimeout(
    () => stop.stop(new TimeLimit(`the handler did not end within ${limitMs} ms`)),
    limitMs,
  );
  try {
    const context = {
      ...readContent(job, trail.link),
      tx,
      audit: trail.audit,
      effects: createEffects(kinds, sql, {
        tenant: job.tenant,
        event: job.event?.id ?? null,
        cause: job.id,
        handler: job.handler,
      }),
      get signal() {
        return stop.signal();
      },
      traceparent: trace.traceparent,
    };
    await untilStopped(async () => handler.run(context as never), stop, onStop);
  } catch (error) {
    throw asError(error);
  } finally {
    clearTimeout(timer);
  }
}

function untilStopped(work: () => Promise<unknown>, stop: StopSwitch, onStop: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const before = stop.reason();
    if (before) return reject(before);
    // hears of it before the handler can: what that does then is refused already
    stop.listen((reason) => {
      onStop();
      reject(reason);
    });
    work()
      .then(() => resolve(), reject)
      .finally(() => stop.listen(undefined));
  });
}
