// Whether an hour was unusual: counts compared with those of the same hour in the weeks before. Arithmetic only.

/** From the least to the most that is usual. */
export interface Band {
  readonly low: number;
  readonly high: number;
}

/** How an hour can be unusual. `silent`: what came regularly no longer comes at all. */
export type AnomalyKind = "high" | "low" | "silent";

/** How many of a type came, by the number of the hour since 1970. Hours in which none came may be left out. */
export interface Series {
  /** The first hour in which the type came. */
  readonly first: number;
  readonly counts: ReadonlyMap<number, number>;
}

/** What is unusual about an hour. */
export interface Verdict {
  readonly kind: AnomalyKind;
  /** For a silence, the first hour without an event; else the hour that was judged. */
  readonly since: number;
  readonly received: number;
  readonly band: Band;
}

/** What is known of the same time before, with an hour's play: see Neighbours. */
interface History {
  /** The same hour of the week in the weeks before, the last first; only weeks in which the type was known. */
  readonly weeks: readonly Neighbours[];
  /** The same hour of the last seven days; only days on which the type was known. */
  readonly days: readonly Neighbours[];
  /** The same hour of the same day in the last two months: what is done once a month is usual on that day. */
  readonly months: readonly Neighbours[];
}

/**
 * Counts of the hour before, of the hour, and of the one after it; of several hours: without the last, all, without the
 * first. Hours are those of UTC: where clocks are changed, what comes at nine comes an hour earlier or later, so what is
 * usual beside an hour is usual in it.
 */
type Neighbours = readonly [number, number, number];

/** How many weeks before are compared with. */
const WEEKS = 8;
/** How many of them are needed; until then the last days must do. */
const WEEKS_LEAST = 3;
const DAYS = 7;
const DAY_HOURS = 24;
const WEEK_HOURS = 7 * DAY_HOURS;
const HOUR_MS = 3_600_000;

/** So many hours before the one that is judged must be known. */
export const HOURS_KNOWN = (WEEKS + 1) * WEEK_HOURS;

/** How far from the middle, in standard deviations, is still usual. */
const DEVIATIONS = 4;
/** None at all is further from chance than few: a silence need not be so far away. */
const DEVIATIONS_OF_SILENCE = 3;
/** Volumes vary by more than chance: by half as many again is never unusual. */
const VARIATION = 0.15;
/** Fewer in an hour are never called many. */
const HIGH_LEAST = 10;
/** What makes the median of the distances as large as a standard deviation, for counts that vary by chance. */
const MAD_SCALE = 1.4826;

/** Judges an hour that is over; undefined where it was usual, or too little is known. */
export function judgeHour(hour: number, series: Series): Verdict | undefined {
  const received = countOf(series, hour, hour);
  if (received === 0) return judgeSilence(hour, series);
  const band = usualBand(historyOf(hour, hour, series), DEVIATIONS);
  if (!band || (received >= band.low && received <= band.high)) return undefined;
  return { kind: received > band.high ? "high" : "low", since: hour, received, band };
}

/**
 * Compares all the time since the last event with the same stretch of the weeks before: what comes a few times a day is
 * missed after a day, what comes every minute after an hour. After a week without any it is not expected any more.
 */
function judgeSilence(hour: number, series: Series): Verdict | undefined {
  let since = hour;
  while (countOf(series, since - 1, since - 1) === 0) {
    since -= 1;
    if (hour - since >= WEEK_HOURS) return undefined;
  }
  for (const from of since === hour ? [hour] : [hour, since]) {
    const band = usualBand({ ...historyOf(from, hour, series), months: [] }, DEVIATIONS_OF_SILENCE);
    if (band && band.low > 0) return { kind: "silent", since, received: 0, band };
  }
  return undefined;
}

/** The band around counts of the same time; undefined where too little is known. */
function usualBand({ weeks, days, months }: History, deviations: number): Band | undefined {
  const band =
    weeks.length >= WEEKS_LEAST
      ? around(weeks, (counts) => robustBand(counts, deviations))
      : days.length >= DAYS
        ? around(days, (counts) => wideBand(counts, deviations))
        : undefined;
  if (!band) return undefined;
  const monthly = months.map((counts) => bandOf(Math.max(...counts), 0, deviations).high);
  return { low: band.low, high: Math.max(band.high, HIGH_LEAST, ...monthly) };
}

function historyOf(from: number, to: number, series: Series): History {
  const shifted = (hours: number): Neighbours[] => {
    // while a type was not known yet, that none came says nothing
    if (from - hours < series.first) return [];
    const count = (first: number, last: number) => countOf(series, first - hours, last - hours);
    if (from === to) return [[count(from - 1, to - 1), count(from, to), count(from + 1, to + 1)]];
    return [[count(from, to - 1), count(from, to), count(from + 1, to)]];
  };
  const times = (count: number, hours: number) =>
    Array.from({ length: count }, (_, index) => shifted((index + 1) * hours)).flat();
  return {
    weeks: times(WEEKS, WEEK_HOURS),
    // of a stretch longer than a day, the days before are a part
    days: to - from < DAY_HOURS ? times(DAYS, DAY_HOURS) : [],
    months: [1, 2].flatMap((back) => shifted(from - sameDay(from, back))),
  };
}

/** The same hour of the same day so many months before; where that month is too short, of the month after. */
function sameDay(hour: number, monthsBack: number): number {
  const date = new Date(hour * HOUR_MS);
  date.setUTCMonth(date.getUTCMonth() - monthsBack);
  return date.getTime() / HOUR_MS;
}

function countOf({ counts }: Series, from: number, to: number): number {
  let sum = 0;
  for (let hour = from; hour <= to; hour += 1) sum += counts.get(hour) ?? 0;
  return sum;
}

/** The band that holds those of the hour and of the two beside it. */
function around(samples: readonly Neighbours[], of: (counts: readonly number[]) => Band): Band {
  const bands = [0, 1, 2].map((place) => of(samples.map((counts) => counts[place]!)));
  return {
    low: Math.min(...bands.map((band) => band.low)),
    high: Math.max(...bands.map((band) => band.high)),
  };
}

/** One week that was unusual itself (a holiday, an outage, a flood) does not move it. */
function robustBand(counts: readonly number[], deviations: number): Band {
  const middle = median(counts);
  return bandOf(middle, MAD_SCALE * median(counts.map((count) => Math.abs(count - middle))), deviations);
}

/** A few days hold working days and others: whatever lies between the least and the most is usual. */
function wideBand(counts: readonly number[], deviations: number): Band {
  return {
    low: bandOf(Math.min(...counts), 0, deviations).low,
    high: bandOf(Math.max(...counts), 0, deviations).high,
  };
}

/** Chance alone makes counts vary by their square root, and small ones further upwards than downwards. */
function bandOf(middle: number, spread: number, deviations: number): Band {
  const deviation = Math.max(spread, Math.sqrt(Math.max(middle, 1)), VARIATION * middle);
  return {
    low: Math.max(0, Math.ceil(middle - deviations * deviation)),
    high: Math.floor(middle + deviations * deviation + deviations ** 2 / 4),
  };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}
