// Looking again and again until Ctrl-C: on a terminal in a screen of its own, elsewhere one answer after the other.
import { ApiError } from "../client/client.ts";
import { sleep } from "../clock.ts";
import { showTime } from "./moment.ts";
import { note } from "./print.ts";
import { fold } from "./width.ts";

/** What is looked at. */
export interface Watched<P> {
  readonly title: string;
  readonly ask: (signal: AbortSignal) => Promise<P>;
  /** As it fits the terminal now. */
  readonly show: (page: P) => string;
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Aborted by Ctrl-C, or when the terminal is closed. A second Ctrl-C after the release ends the process. */
export function untilInterrupted(): { readonly signal: AbortSignal; release(): void } {
  const ended = new AbortController();
  const onSignal = () => ended.abort();
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return {
    signal: ended.signal,
    release: () => SIGNALS.forEach((signal) => process.off(signal, onSignal)),
  };
}

/** True where the next look may well be answered: whoever watches wants to see the server come back. */
export function mayPass(error: unknown): error is ApiError {
  return error instanceof ApiError && (error.status === 0 || error.status >= 500);
}

/** Looks until it is interrupted. A first look that fails ends it: then something else is wrong. */
export async function watchFor<P>(watched: Watched<P>, everyMs: number, isScreen: boolean): Promise<void> {
  const { signal, release } = untilInterrupted();
  try {
    const first = await orNothing(watched.ask(signal), signal);
    if (first === undefined) return;
    await (isScreen
      ? onScreen(watched, first, { everyMs, signal })
      : inTurn(watched, first, { everyMs, signal }));
  } finally {
    release();
  }
}

interface Pace {
  readonly everyMs: number;
  readonly signal: AbortSignal;
}

async function onScreen<P>(watched: Watched<P>, first: P, { everyMs, signal }: Pace): Promise<void> {
  let page = first;
  let seenAt = new Date();
  let fault: string | undefined;
  const draw = () => {
    const head =
      fault === undefined
        ? `${watched.title}  ${showTime(seenAt)}  Ctrl-C ends`
        : `NO ANSWER, trying again. What follows is of ${showTime(seenAt)}. Ctrl-C ends\n${fault}`;
    process.stdout.write(drawing(`${head}\n\n${watched.show(page)}`));
  };
  process.stdout.write("\u001B[?1049h\u001B[?25l"); // a screen of its own, without a cursor
  process.stdout.on("resize", draw);
  try {
    for (;;) {
      draw();
      await sleep(everyMs, signal);
      if (signal.aborted) return;
      const looked = await lookAgain(watched, signal);
      if (looked === undefined) return;
      fault = looked.fault;
      if (looked.page === undefined) continue;
      page = looked.page;
      seenAt = new Date();
    }
  } finally {
    process.stdout.off("resize", draw);
    process.stdout.write("\u001B[?25h\u001B[?1049l"); // the terminal as it was
  }
}

async function inTurn<P>(watched: Watched<P>, first: P, { everyMs, signal }: Pace): Promise<void> {
  process.stdout.write(watched.show(first));
  let told: string | undefined;
  for (;;) {
    await sleep(everyMs, signal);
    if (signal.aborted) return;
    const looked = await lookAgain(watched, signal);
    if (looked === undefined) return;
    const { page, fault } = looked;
    if (fault !== undefined && fault !== told) note(`ukemi: ${fault} Trying again.`);
    told = fault;
    if (page !== undefined) process.stdout.write(watched.show(page));
  }
}

/** The page, or what kept it away; undefined where nobody waits for it any more. */
async function lookAgain<P>(
  { ask }: Watched<P>,
  signal: AbortSignal,
): Promise<{ readonly page?: P; readonly fault?: string } | undefined> {
  try {
    const page = await orNothing(ask(signal), signal);
    return page === undefined ? undefined : { page };
  } catch (error) {
    if (mayPass(error)) return { fault: error.message };
    throw error;
  }
}

/** The answer; undefined as soon as it is interrupted, however long the answer takes. */
async function orNothing<T>(asked: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const interrupted = new Promise<undefined>((resolve) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  try {
    return await Promise.race([asked, interrupted]);
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  } finally {
    asked.catch(() => {}); // nobody waits for it any more
  }
}

/** Over what was there, line by line, so that nothing flickers; no more lines than the terminal has. */
function drawing(text: string): string {
  const { columns, rows } = process.stdout;
  const lines = fold(text.trimEnd(), columns).split("\n");
  const rest = lines.length - rows;
  const shown = rest > 0 ? [...lines.slice(0, rows - 1), `… ${rest + 1} more lines`] : lines;
  return `\u001B[H${shown.map((line) => `${line}\u001B[K`).join("\r\n")}\u001B[J`;
}
