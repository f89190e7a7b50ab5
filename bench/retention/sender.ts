// A sender at a steady rate: each delivery is due at its time, whether or not the one before has been answered.
import { Agent, request } from "node:http";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { signStripe } from "../../src/testing/sign.ts";

/** Latencies in milliseconds, from the time a delivery was due. */
export interface Latencies {
  readonly count: number;
  readonly failed: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

export interface SenderOptions {
  readonly url: string;
  readonly secret: string;
  readonly perSecond: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: 256 });
let sent = 0;

/** What was measured: each delivery's time, and how many were not answered with 204. */
export interface Measured {
  readonly times: readonly number[];
  readonly failed: number;
}

/** Sends until the signal fires; resolves when the last is answered. */
export async function sendSteadily(options: SenderOptions, ended: AbortSignal): Promise<Measured> {
  const everyMs = 1000 / options.perSecond;
  const beganAt = performance.now();
  const times: number[] = [];
  let failed = 0;
  const under: Promise<void>[] = [];
  const one = async (dueAt: number) => {
    const status = await post(options);
    times.push(performance.now() - dueAt);
    if (status !== 204) failed += 1;
  };
  for (let index = 0; !ended.aborted; index++) {
    const dueAt = beganAt + index * everyMs;
    const waitMs = dueAt - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    under.push(one(dueAt));
  }
  await Promise.all(under);
  return { times, failed };
}

/** The latencies of all parts together. */
export function summarise(parts: readonly Measured[]): Latencies {
  const sorted = parts.flatMap((part) => part.times).toSorted((a, b) => a - b);
  const failed = parts.reduce((sum, part) => sum + part.failed, 0);
  const at = (share: number) =>
    round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
  return { count: sorted.length, failed, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

export function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function post({ url, secret }: SenderOptions): Promise<number> {
  sent += 1;
  const body = sampleEvent("payment_intent.succeeded", { id: `evt_bench_${process.pid}_${sent}` });
  return new Promise((resolve) => {
    const outgoing = request(
      `${url}/webhooks/stripe`,
      { method: "POST", agent, headers: { "content-type": "application/json", ...signStripe(body, secret) } },
      (answer) => {
        answer.resume();
        answer.on("end", () => resolve(answer.statusCode ?? 0));
      },
    );
    outgoing.on("error", () => resolve(0));
    outgoing.end(body);
  });
}
