// What Ukemi must reach: each bar once, in the order of the last table of a run. Nothing here is measured.

/** A limit of a ratio, or of milliseconds. */
interface Bar {
  readonly what: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly below?: number;
  readonly unit?: "ms" | "MB";
}

const BARS = {
  ingestLimit: { what: "ingest ÷ group commit of the same rows by hand", atLeast: 0.85 },
  ingestPeers: { what: "ingest ÷ the best of graphile-worker, pg-boss, DBOS behind HTTP", atLeast: 5 },
  ingestRedis: { what: "ingest ÷ BullMQ behind HTTP", atLeast: 1 },
  ingestSlowest: { what: "ingest, p99 ÷ that of the group commit by hand", atMost: 1.2 },
  ingestLogs: { what: "ingest, logs and metrics on ÷ off", atLeast: 0.9 },
  duplicates: { what: "ingest, 90 % duplicates ÷ new events", atLeast: 1 },
  quarterSlowest: { what: "ingest at 25 % load, p99", below: 20, unit: "ms" },
  quarterAverage: { what: "ingest at 25 % load, average", atMost: 200, unit: "ms" },
  drainShared: { what: "drain with sharedCommit ÷ pg-boss transactional", atLeast: 2.5 },
  drainTransactional: { what: "drain exactly once ÷ pg-boss transactional", atLeast: 1.25 },
  drainLimit: { what: "drain exactly once ÷ one-flush transaction by hand", atLeast: 0.85 },
  noopGraphile: { what: "drain no-op ÷ graphile-worker", atLeast: 1.3 },
  latencyPeers: { what: "latency in the same process, p50 ÷ that of the fastest peer", below: 1 },
  latency: { what: "latency in the same process, p50", below: 1.5, unit: "ms" },
  growth: { what: "growth", atLeast: 0.9 },
  scale: { what: "4 worker processes ÷ 1", atLeast: 1 },
  usageLimit: { what: "usage export ÷ a bare loop of undici", atLeast: 0.7 },
  mailRate: { what: "mail ÷ the rate that is set", atLeast: 0.9 },
  usageMemory: { what: "usage export, resident memory", below: 200, unit: "MB" },
} as const satisfies Readonly<Record<string, Bar>>;

export type BarName = keyof typeof BARS;

/** What was measured against a bar. */
export interface Judged {
  readonly bar: BarName;
  /** Undefined where it could not be measured here. */
  readonly measured: number | undefined;
  /** Which of several figures of the same bar. */
  readonly of?: string;
  /** What the limit by hand comes to against the same: a bar beyond it is beyond the machine, or beyond the tables. */
  readonly byHand?: number | undefined;
}

export function isReached(name: BarName, measured: number): boolean {
  const { atLeast = -Infinity, atMost = Infinity, below = Infinity }: Bar = BARS[name];
  return measured >= atLeast && measured <= atMost && measured < below;
}

export const COLUMNS_OF_BARS = ["", "measured", "by hand", "bar", ""] as const;

/** The bars that were measured, in their order. */
export function barsIn<T extends Judged>(
  judged: readonly T[],
): readonly { readonly of: T; readonly cells: readonly string[] }[] {
  const order = Object.keys(BARS);
  return judged
    .toSorted((a, b) => order.indexOf(a.bar) - order.indexOf(b.bar))
    .map((one) => ({ of: one, cells: cellsOf(one) }));
}

function cellsOf({ bar, measured, of, byHand }: Judged): readonly string[] {
  const { what, unit }: Bar = BARS[bar];
  return [
    of === undefined ? what : `${what}: ${of}`,
    measured === undefined ? "not run" : `**${withUnit(measured.toFixed(2), unit)}**`,
    byHand === undefined ? "" : withUnit(byHand.toFixed(2), unit),
    limitOf(BARS[bar]),
    measured === undefined ? "" : isReached(bar, measured) ? "reached" : "**not reached**",
  ];
}

function limitOf({ atLeast, atMost, below, unit }: Bar): string {
  if (atLeast !== undefined) return `≥ ${withUnit(String(atLeast), unit)}`;
  return atMost === undefined ? `< ${withUnit(String(below), unit)}` : `≤ ${withUnit(String(atMost), unit)}`;
}

function withUnit(figure: string, unit: Bar["unit"]): string {
  return unit === undefined ? figure : `${figure} ${unit}`;
}
