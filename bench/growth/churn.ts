// Work that is not measured: it leaves the tables as work leaves them.
import { setTimeout as sleep } from "node:timers/promises";
import type { Bench } from "../bench.ts";
import { startWorker } from "../drain/drain.ts";
import type { Sample } from "../drain/drainer.ts";
import { NOOP } from "../drain/workers.ts";
import { progressBar } from "../seed/progress.ts";
import { grouped } from "../tables.ts";

/** So many are stored at once, whenever no more than these are left. */
const BATCH = 10_000;
const LOOK_MS = 250;
/** On a slow machine fewer jobs are done than were asked for. */
const MS_MAX = 600_000;
/** Longer than any machine should need for a batch. */
const STUCK_MS = 60_000;

export interface Churn {
  readonly database: string;
  readonly jobs: number;
  /** Before the progress bar. */
  readonly title: string;
  /** The number of the first event. @default 0 */
  readonly first?: number;
}

/** Lets jobs go through the tables, with handlers that do nothing: to the tables they are all the same. */
export async function churn(
  bench: Bench,
  { database, jobs, title, first = 0 }: Churn,
): Promise<{ count: number; seconds: number }> {
  const program = await startWorker(bench, NOOP, NOOP.workers[0], {
    database,
    env: { BENCH_FIRST: String(first) },
  });
  const startedAt = performance.now();
  const onProgress = progressBar(title);
  await program.ask("start");
  let stored = 0;
  let last = { left: 0, at: startedAt };
  for (let left = 0; ;) {
    const isEnough = stored >= jobs || performance.now() - startedAt > MS_MAX;
    if (isEnough && left === 0) break;
    if (!isEnough && left <= BATCH) {
      const count = Math.min(BATCH, jobs - stored);
      await program.ask("store", { count });
      stored += count;
    } else await sleep(LOOK_MS);
    left = (await program.ask<Sample>("sample")).unfinished;
    if (left !== last.left) last = { left, at: performance.now() };
    else if (performance.now() - last.at > STUCK_MS) throw new Error(`${left} jobs are left, and stay so`);
    onProgress({ done: stored - left, total: jobs, what: `of ${grouped(jobs)} jobs` });
  }
  await program.stop();
  return { count: stored, seconds: (performance.now() - startedAt) / 1000 };
}
