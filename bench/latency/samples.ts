// How long it takes from the receipt or the enqueue of a job to the start of its handler, one at a time, the worker idle.
import { FIRST_NUMBER } from "../drain/job.ts";
import { answerBench, memoryPeak } from "../program.ts";

/** A way to ask for work, and to know when it began. */
export interface Trip {
  /** Makes what is to be sent, before the clock runs; the answer sends it. */
  prepare(number: number): () => Promise<unknown>;
  /** Resolves with the time (of process.hrtime.bigint) at which the next handler starts. */
  started(): Promise<bigint>;
  /** Of another process that takes part: the most memory that it has had. */
  memory?(): Promise<number>;
  end(): Promise<void>;
}

/** What a run came to, in milliseconds. */
export interface Sampled {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
}

/** Long enough for the worker to have completed the last job, and to be waiting. */
const PAUSE_MS = 4;
/** One that nobody starts is a fault, not a slow one. */
const LOST_MS = 10_000;

/** Starts of handlers, in the order in which they happened. */
export function createStarts() {
  const times: bigint[] = [];
  const waiting: ((at: bigint) => void)[] = [];
  return {
    /** For the first line of a handler. */
    note(): void {
      const at = process.hrtime.bigint();
      const tell = waiting.shift();
      if (tell) tell(at);
      else times.push(at);
    },
    next: (): Promise<bigint> =>
      times.length > 0 ? Promise.resolve(times.shift()!) : new Promise((resolve) => waiting.push(resolve)),
  };
}

/** Answers `measure`. */
export function answerLatency(trip: Trip): void {
  let number = FIRST_NUMBER;

  async function one(): Promise<number> {
    const send = trip.prepare((number += 1));
    const started = trip.started();
    const from = process.hrtime.bigint();
    const [at] = await Promise.all([inTime(started), send()]);
    return Number(at - from) / 1e6;
  }

  async function measure({
    count,
    seconds,
  }: {
    readonly count: number;
    readonly seconds: number;
  }): Promise<Sampled> {
    const times: number[] = [];
    for (const end = performance.now() + seconds * 1000; times.length < count && performance.now() < end;) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      times.push(await one());
    }
    times.sort((a, b) => a - b);
    const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))]!;
    return { count: times.length, p50: at(0.5), p99: at(0.99) };
  }

  const memory = async () => Math.max(memoryPeak(), (await trip.memory?.()) ?? 0);
  answerBench({ measure, memory }, () => trip.end());
}

async function inTime<T>(promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const lost = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("the handler did not start")), LOST_MS);
  });
  return Promise.race([promise, lost]).finally(() => clearTimeout(timer));
}
