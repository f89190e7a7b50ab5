// A bar on stderr: millions of rows take minutes.

/** Told how far it has come. */
export type Progress = (news: {
  readonly done: number;
  readonly total: number;
  readonly what: string;
}) => void;

const WIDTH = 30;
const DRAW_MS = 500;

/** Draws a bar in one line, which is gone at the end. */
export function progressBar(title: string): Progress {
  const startedAt = performance.now();
  let drawn = { at: -Infinity, what: "" };
  return (news) => {
    const at = performance.now();
    const isOver = news.done === news.total;
    if (!isOver && news.what === drawn.what && at - drawn.at < DRAW_MS) return;
    drawn = { at, what: news.what };
    process.stderr.write(`\r\u001B[K${isOver ? "" : drawBar(title, news, (at - startedAt) / 1000)}`);
  };
}

export function drawBar(
  title: string,
  { done, total, what }: Parameters<Progress>[0],
  seconds: number,
): string {
  const full = Math.floor((WIDTH * done) / total);
  const percent = Math.floor((100 * done) / total);
  const bar = `${"█".repeat(full)}${"░".repeat(WIDTH - full)}`;
  return `${title} ${bar} ${String(percent).padStart(3)} %  ${Math.round(seconds)} s  ${what}`;
}
