// What stops a handler before it ends. Most handlers never ask for a signal, so one is made only for those who do.

export interface StopSwitch {
  /** Why it was stopped; undefined while it was not. */
  reason(): Error | undefined;
  /** Stops it; only the first reason counts. */
  stop(reason: Error): void;
  /** Tells of the stop, before anyone hears of it by the signal. Who listens next takes the place. */
  listen(listener: ((reason: Error) => void) | undefined): void;
  /** For the handler and whatever it calls. */
  signal(): AbortSignal;
}

export function createStopSwitch(): StopSwitch {
  let reason: Error | undefined;
  let listener: ((reason: Error) => void) | undefined;
  let controller: AbortController | undefined;
  return {
    reason: () => reason,
    stop(why) {
      if (reason !== undefined) return;
      reason = why;
      listener?.(why);
      controller?.abort(why);
    },
    listen: (next) => void (listener = next),
    signal() {
      controller ??= new AbortController();
      if (reason !== undefined) controller.abort(reason);
      return controller.signal;
    },
  };
}
