// The round that counts events by the hour, and tells of hours that were unusual.
import { steadyMs } from "../clock.ts";
import type { Alert } from "../observe/alerts.ts";
import { HOURS_KNOWN, judgeHour, type Verdict } from "../observe/anomaly.ts";
import { transaction, type Pool } from "../storage/postgres.ts";
import {
  knownTypes,
  nextHourToJudge,
  readSeries,
  recordJudgement,
  type Judgement,
  type KnownType,
  type Noticed,
} from "../storage/statistics-anomalies.ts";
import { countStaleHour, findStaleHours } from "../storage/statistics-count.ts";
import type { Round } from "./rounds.ts";

const EVERY_MS = 60_000;
/** Somebody else's count is recent enough for us for a little less than that. */
const RECENT_MS = 50_000;
/** The count may take a hundredth of the database's time: where hours are large it comes more rarely. */
const PAUSE_PER_WORK = 100;
const PAUSE_MS_MAX = 600_000;

/** An older store is counted for so long at a time, with as long a pause: the newest hours have their turn in between. */
const STRETCH_MS = 10_000;

const NEVER = new AbortController().signal;

/** What the round tells the world. */
export interface StatisticsNews {
  readonly alert: (alert: Alert) => void;
  /** An anomaly was written down by this process. */
  readonly noticed: (anomaly: Pick<Noticed, "source" | "kind">) => void;
}

export function createStatisticsRound({ alert, noticed }: StatisticsNews): Round {
  return {
    name: "counting events",
    async run(duties, ended) {
      const { slowestMs, left } = await countEvents(duties, { ended, mostMs: STRETCH_MS });
      for (const anomaly of await judgeHours(duties, ended)) {
        noticed(anomaly);
        if (anomaly.is_news) alert(alertOf(anomaly));
      }
      if (left) return STRETCH_MS;
      return Math.max(EVERY_MS, Math.min(PAUSE_MS_MAX, PAUSE_PER_WORK * slowestMs));
    },
  };
}

/** How a count is bounded. */
export interface CountOptions {
  readonly ended?: AbortSignal;
  /** Changes that somebody looked for less than so many milliseconds ago are not looked for again. @default 50000 */
  readonly recentMs?: number;
  /** No hour is begun after so many milliseconds. @default Infinity */
  readonly mostMs?: number;
}

/** What a count did. */
export interface Counted {
  /** How long the slowest hour took. */
  readonly slowestMs: number;
  /** True where hours are left that could have been counted, with more time. */
  readonly left: boolean;
}

/**
 * Finds the hours that changed and counts them anew, one in each transaction, the newest first; what is left undone is
 * done by whoever comes next.
 */
export async function countEvents(pool: Pool, options: CountOptions = {}): Promise<Counted> {
  const { ended = NEVER, recentMs = RECENT_MS, mostMs = Infinity } = options;
  const begunAt = steadyMs();
  for (let found = "more", ms = recentMs; found === "more" && !ended.aborted; ms = 0) {
    found = await transaction(pool, (client) => findStaleHours(client, ms));
  }
  let slowestMs = 0;
  while (!ended.aborted) {
    const startedAt = steadyMs();
    if (startedAt - begunAt > mostMs) return { slowestMs, left: true };
    if ((await transaction(pool, countStaleHour)) !== "counted") break;
    slowestMs = Math.max(slowestMs, steadyMs() - startedAt);
  }
  return { slowestMs, left: false };
}

/** Judges the hours that are over. Returns the anomalies that this process was the first to write down. */
export async function judgeHours(pool: Pool, ended: AbortSignal = NEVER): Promise<readonly Noticed[]> {
  const noticed: Noticed[] = [];
  while (!ended.aborted) {
    const hour = await nextHourToJudge(pool);
    if (hour === undefined) break;
    const judgement = await judge(pool, hour);
    const written = await transaction(pool, (client) => recordJudgement(client, judgement));
    // another process judges
    if (!written) break;
    noticed.push(...written);
  }
  return noticed;
}

async function judge(pool: Pool, hour: number): Promise<Judgement> {
  const begun: Judgement["begun"][number][] = [];
  const ended: KnownType[] = [];
  for (const known of await knownTypes(pool, hour - HOURS_KNOWN)) {
    const counts = await readSeries(pool, known, [hour - HOURS_KNOWN, hour]);
    const verdict = judgeHour(hour, { first: known.first, counts });
    if (lasts(known, verdict, hour, counts)) continue;
    if (known.open) ended.push(known);
    if (!verdict) continue;
    const { kind, since, received, band } = verdict;
    const { source, type } = known;
    begun.push({ source, type, kind, since, received, expected_low: band.low, expected_high: band.high });
  }
  return { hour, ended, begun };
}

/** What was told already goes on. A silence ends with an event, or when it is as old as what it was compared with. */
function lasts(
  { open }: KnownType,
  verdict: Verdict | undefined,
  hour: number,
  counts: ReadonlyMap<number, number>,
): boolean {
  if (!open) return false;
  if (open.kind !== "silent") return verdict?.kind === open.kind;
  return !counts.has(hour) && hour - open.since < HOURS_KNOWN;
}

function alertOf({ source, type, kind, hour, received, expected_low, expected_high }: Noticed): Alert {
  return {
    kind: "volume_unusual",
    source,
    type,
    volume: kind,
    hour,
    received,
    expectedLow: expected_low,
    expectedHigh: expected_high,
  };
}
