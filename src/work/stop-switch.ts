// What stops a handler before it ends. Most handlers never ask for a signal, so one is made only for those who do.

export class StopSwitch {
  #reason: Error | undefined;
  #listener: ((reason: Error) => void) | undefined;
  #controller: AbortController | undefined;

  /** Why it was stopped; undefined while it was not. */
  reason(): Error | undefined {
    return this.#reason;
  }

  /** Stops it; only the first reason counts, and who listens hears of every one. */
  stop(reason: Error): void {
    const isFirst = this.#reason === undefined;
    this.#reason ??= reason;
    this.#listener?.(reason);
    if (isFirst) this.#controller?.abort(reason);
  }

  /** Tells of a stop, before anyone hears of it by the signal. Who listens next takes the place. */
  listen(listener: ((reason: Error) => void) | undefined): void {
    this.#listener = listener;
  }

  /** For the handler and whatever it calls. */
  signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }
}
