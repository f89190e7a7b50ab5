// The clock of the drain contests: one or several processes work on one database for a short time.
import { setTimeout as sleep } from "node:timers/promises";
import type { Program } from "../programs.ts";
import type { Looked, Sample } from "./drainer.ts";

/** How long they work. */
export interface Clock {
  /** Before the clock begins: connections are made, statements planned, code compiled. */
  readonly warmSeconds: number;
  readonly seconds: number;
}

export const CLOCK: Clock = { warmSeconds: 1, seconds: 3 };
export const CLOCK_QUICK: Clock = { warmSeconds: 0.4, seconds: 0.7 };
/** In a short run fewer jobs are needed, and storing them is not measured. */
export const QUICK_SHARE = 0.15;

const FIRST_MS = 20_000;
const LOOK_MS = 20;
/** The clock ends early when so much is done: what comes then is the end of a queue, not its middle. */
const MOST = 0.9;

/** What a run came to. */
export interface Drained {
  readonly perSecond: number;
  /** False where the jobs came to their end before half of the time was over. */
  readonly hadEnough: boolean;
}

/** Lets them work; says how many jobs were finished in a second. The first one is asked what has been done. */
export async function drainFor(
  programs: readonly [Program, ...Program[]],
  { warmSeconds, seconds }: Clock,
): Promise<Drained> {
  const [first] = programs;
  const before = await lookAt(programs);
  const handled = async () => (await handledBy(programs)) - before.handled;
  await Promise.all(programs.map((program) => program.ask("start")));
  if (!(await until(async () => (await handled()) > 0, FIRST_MS))) {
    throw new Error(`no handler ran within ${FIRST_MS} ms`);
  }
  await sleep(warmSeconds * 1000);
  const from = await first.ask<Sample>("sample");
  await until(async () => (await handled()) > before.unfinished * MOST, seconds * 1000);
  const to = await first.ask<Sample>("sample");
  await Promise.all(programs.map((program) => program.ask("stop")));
  demandOnce(before, await lookAt(programs));
  const tookMs = to.at - from.at;
  return {
    perSecond: (1000 * (from.unfinished - to.unfinished)) / tookMs,
    hadEnough: tookMs > seconds * 500,
  };
}

interface State extends Looked {
  readonly handled: number;
}

async function lookAt(programs: readonly [Program, ...Program[]]): Promise<State> {
  return { ...(await programs[0].ask<Looked>("look")), handled: await handledBy(programs) };
}

async function handledBy(programs: readonly Program[]): Promise<number> {
  const counts = await Promise.all(programs.map((program) => program.ask<number>("handled")));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Whoever loses a job or does it twice is not fast. */
function demandOnce(before: State, after: State): void {
  const finished = before.unfinished - after.unfinished;
  const handled = after.handled - before.handled;
  if (handled !== finished) throw new Error(`${handled} handlers ran, and ${finished} jobs were finished`);
  if (before.balance === undefined || after.balance === undefined) return;
  const effects = after.balance - before.balance;
  if (effects !== finished) throw new Error(`${effects} effects for ${finished} finished jobs`);
}

/** Waits until it is so, or the time is over; returns whether it is. */
async function until(isSo: () => Promise<boolean>, withinMs: number): Promise<boolean> {
  for (const end = performance.now() + withinMs; performance.now() < end;) {
    if (await isSo()) return true;
    await sleep(Math.min(LOOK_MS, Math.max(0, end - performance.now())));
  }
  return isSo();
}
