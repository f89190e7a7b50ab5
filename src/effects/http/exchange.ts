// One request on the wire, and what came back: never a second one, whatever becomes of the first.
import { setMaxListeners } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";

/** What the peer answered. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The beginning of its body. */
  readonly body: Buffer;
  /** `cut` where we stopped reading, `broken` where the rest did not come. */
  readonly ended: "whole" | "cut" | "broken";
}

/** How it ended. `why` is for a program: its message may carry addresses. */
export type Ending =
  | { readonly is: "answered"; readonly answer: Answer }
  /** No byte of it has left. */
  | { readonly is: "unsent"; readonly why: Error }
  /** It may have reached the peer, and no answer came. */
  | { readonly is: "unanswered"; readonly why: Error };

/** We stopped waiting. */
export class GivenUp extends Error {
  override readonly name = "GivenUp";
  readonly after: "timeout" | "signal" | "resend";

  constructor(after: GivenUp["after"]) {
    super(after);
    this.after = after;
  }
}

export interface ExchangeLimits {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly answerBytesMax: number;
  /** Asked right before the first byte: it may have waited for a connection. @default it may */
  readonly mayBegin?: () => boolean;
}

const TIMER_MAX_MS = 2 ** 31 - 1;

/** Sends it, and never rejects. */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { timeoutMs, signal, ...limits }: ExchangeLimits,
): Promise<Ending> {
  return new Promise((resolve) => {
    const { handler, giveUp } = follow(limits, (ending) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      resolve(ending);
    });
    const onAbort = () => giveUp(new GivenUp("signal"));
    // one clock over everything, the wait for a free connection too: those of undici are a second coarse
    const timer = setTimeout(() => giveUp(new GivenUp("timeout")), Math.min(timeoutMs, TIMER_MAX_MS));
    // many calls share the signal that fires when the process stops: Node takes them for a leak
    setMaxListeners(0, signal);
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) return onAbort();
    dispatcher.dispatch(request, handler);
  });
}

/** Follows one request through undici, and tells once how it ended. Not `request()`: that does not say what was sent. */
export function follow(
  { answerBytesMax, mayBegin = () => true }: Pick<ExchangeLimits, "answerBytesMax" | "mayBegin">,
  onEnd: (ending: Ending) => void,
) {
  let sending: Dispatcher.DispatchController | undefined;
  let head: Pick<Answer, "status" | "headers"> | undefined;
  const pieces: Buffer[] = [];
  let bytes = 0;
  let isOver = false;

  function end(ending: Ending): void {
    if (isOver) return;
    isOver = true;
    onEnd(ending);
  }
  function endWith(ended: Answer["ended"], { status, headers }: Pick<Answer, "status" | "headers">): void {
    const body = Buffer.concat(pieces).subarray(0, answerBytesMax);
    end({ is: "answered", answer: { status, headers, body, ended } });
  }
  function fail(why: Error): void {
    if (head !== undefined) return endWith("broken", head);
    end({ is: sending === undefined ? "unsent" : "unanswered", why });
  }
  function giveUp(why: Error): void {
    fail(why);
    sending?.abort(why);
  }

  const handler: Dispatcher.DispatchHandler = {
    /** Right before the first byte is written. */
    onRequestStart(controller) {
      // undici may come here again with a request whose connection was lost: it does so for pipelined ones. And it keeps
      // one that was given up while it waited for a connection. Neither may be written.
      if (sending !== undefined) fail(new GivenUp("resend"));
      else if (!isOver && !mayBegin()) fail(new GivenUp("signal"));
      if (isOver) return controller.abort(new GivenUp("resend"));
      sending = controller;
    },
    onResponseStart(_controller, status, headers) {
      if (status >= 200) head = { status, headers };
    },
    onResponseData(controller, piece) {
      if (isOver || head === undefined) return;
      pieces.push(piece);
      bytes += piece.length;
      if (bytes <= answerBytesMax) return;
      endWith("cut", head);
      controller.abort(new Error("The answer is longer than what is kept of it."));
    },
    onResponseEnd() {
      if (head !== undefined) endWith("whole", head);
    },
    onResponseError: (_controller, error) => fail(error),
  };
  return { handler, giveUp };
}
