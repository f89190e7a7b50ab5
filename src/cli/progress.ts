// A bar on standard error that shows how far something has come, how fast it goes, and when it will be done.
import { showSpan } from "./moment.ts";
import { clean, cut } from "./width.ts";

const BAR = 24;
/** Fewer are done before anyone could read it. */
const LEAST = 400;
/** What is drawn more often than this cannot be read, and fills a log of the terminal. */
const EVERY_MS = 100;

/** How far something has come. */
export interface Progress {
  readonly done: number;
  readonly total: number;
}

export interface ProgressBar {
  /** Draws it; `note` says what is under way. */
  show(progress: Progress, note?: string): void;
  /** Takes the bar away. */
  end(): void;
}

/** Draws only on a terminal, and only where there are many. */
export function createProgressBar(
  what: string,
  {
    stream = process.stderr,
    least = LEAST,
  }: { readonly stream?: NodeJS.WriteStream; readonly least?: number } = {},
): ProgressBar {
  const startedAt = performance.now();
  let first: number | undefined; // what was done before does not say how fast it goes now
  let drawnAt = Number.NEGATIVE_INFINITY;
  return {
    show({ done, total }, note = "") {
      const now = performance.now();
      first ??= done;
      const isLast = done >= total;
      if (!stream.isTTY || total < least || (now - drawnAt < EVERY_MS && !isLast)) return;
      drawnAt = now;
      const bar = barOf({ done, total }, now - startedAt, first);
      const line = clean(`${what} ${bar}${note === "" ? "" : `  ${note}`}`);
      stream.write(`\r\u001B[K${cut(line, (stream.columns || 80) - 1)}`);
    },
    end() {
      if (drawnAt > 0) stream.write("\r\u001B[K");
    },
  };
}

/** `████░░░░ 200/500  40 %  120/s  3 s left`. */
export function barOf({ done, total }: Progress, elapsedMs: number, first = 0): string {
  const share = total === 0 ? 1 : Math.min(1, done / total);
  const filled = Math.round(share * BAR);
  const perSecond = ((done - first) / Math.max(1, elapsedMs)) * 1000;
  const rate = perSecond >= 10 || perSecond === 0 ? Math.round(perSecond) : Math.round(perSecond * 10) / 10;
  const left =
    perSecond === 0 || share === 1 ? "" : `  ${showSpan(((total - done) / perSecond) * 1000)} left`;
  return `${"█".repeat(filled)}${"░".repeat(BAR - filled)} ${done}/${total}  ${Math.floor(share * 100)} %  ${rate}/s${left}`;
}
