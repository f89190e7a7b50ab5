// A bar on standard error that shows how far a change of many has come.
import type { Progress } from "../operate/batches.ts";

const BAR = 24;
/** Fewer are done before anyone could read it. */
const LEAST = 400;

export interface ProgressBar {
  show(progress: Progress): void;
  /** Takes the bar away. */
  end(): void;
}

/** Draws only on a terminal, and only where there are many. */
export function createProgressBar(what: string, stream: NodeJS.WriteStream = process.stderr): ProgressBar {
  const startedAt = performance.now();
  let drawn = false;
  return {
    show({ done, total }) {
      if (!stream.isTTY || total < LEAST) return;
      drawn = true;
      const share = total === 0 ? 1 : done / total;
      const filled = Math.round(share * BAR);
      const perSecond = Math.round((done / Math.max(1, performance.now() - startedAt)) * 1000);
      const bar = "█".repeat(filled) + "░".repeat(BAR - filled);
      stream.write(`\r\u001B[K${what} ${bar} ${done}/${total}  ${Math.floor(share * 100)} %  ${perSecond}/s`);
    },
    end() {
      if (drawn) stream.write("\r\u001B[K");
    },
  };
}
