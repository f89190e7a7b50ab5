// What stops a handler before it ends. Most handlers never ask for a signal, so one is made only for those who do.

export interface StopSwitch {
  /** Why it was stopped; undefined while it was not. */
  reason(): Error | undefined;
  /** Stops it; only the first reason counts, and who listens hears of every one. */
  stop(reason: Error): void;
  /** Tells of a stop, before anyone hears of it by the signal. Who listens next takes the place. */
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
      const isFirst = reason === undefined;
      reason ??= why;
      listener?.(why);
      if (isFirst) controller?.abort(why);
    },
    listen: (next) => void (listener = next),
    signal() {
      controller ??= new AbortController();
      if (reason !== undefined) controller.abort(reason);
      return controller.signal;
    },
  };
}
