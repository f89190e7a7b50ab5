// A bar on stderr: millions of rows take minutes.

/** Told how far it has come. */
export type Progress = (news: {
  readonly done: number;
  readonly total: number;
  readonly what: string;
}) => void;

const WIDTH = 30;

/** Draws a bar in one line, which is gone at the end. */
export function progressBar(title: string): Progress {
  const startedAt = performance.now();
  return (news) => {
    const seconds = (performance.now() - startedAt) / 1000;
    process.stderr.write(`\r\u001B[K${news.done === news.total ? "" : drawBar(title, news, seconds)}`);
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
