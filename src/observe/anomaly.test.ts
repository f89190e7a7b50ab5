// Unusual hours: what is normal must not cry wolf, and what is broken must be seen.
import { expect, test } from "vitest";
import { seededRandom, type Random } from "../../test/support/seed.ts";
import { judgeHour, type Series, type Verdict } from "./anomaly.ts";

const DAY = 24;
const WEEK = 7 * DAY;
const YEAR = 52 * WEEK;
/** Monday, the first of January 2024, at midnight. */
const START = Date.UTC(2024, 0, 1) / 3_600_000;

const uniform = (random: Random) => (random.below(2 ** 32) + 0.5) / 2 ** 32;

/** As many as chance alone makes of a mean. */
function poisson(random: Random, mean: number): number {
  if (mean > 50) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(random)));
  let count = 0;
  for (let left = Math.exp(-mean), product = uniform(random); product > left; count += 1)
    product *= uniform(random);
  return count;
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(uniform(random))) * Math.cos(2 * Math.PI * uniform(random));
}

/** A mean that itself varies from hour to hour, as that of real senders does. */
const varied = (random: Random, mean: number) => poisson(random, mean * Math.exp(0.15 * normal(random)));

/** Hours of a working day, Monday to Friday, in a place that is so many hours east. */
const isOffice = (hour: number, east = 0) => {
  const local = hour + east;
  return local % DAY >= 8 && local % DAY < 18 && Math.floor(local / DAY) % 7 < 5;
};

function seriesOf(length: number, count: (hour: number) => number): Series {
  const counts = new Map<number, number>();
  let first = Infinity;
  for (let hour = 0; hour < length; hour += 1) {
    const received = count(hour);
    if (received === 0) continue;
    first = Math.min(first, START + hour);
    counts.set(START + hour, received);
  }
  return { first, counts };
}

/** Judges each hour knowing only what came before; told are those that begin a run of hours of one kind. */
function told(series: Series, from: number, to: number): Verdict[] {
  const news: Verdict[] = [];
  let last: Verdict["kind"] | undefined;
  for (let hour = from; hour < to; hour += 1) {
    const verdict = judgeHour(START + hour, series);
    const silenceLasts = last === "silent" && !series.counts.has(START + hour);
    if (silenceLasts) continue;
    if (verdict && verdict.kind !== last) news.push(verdict);
    last = verdict?.kind;
  }
  return news;
}

const NORMAL: readonly [name: string, mean: (hour: number) => number][] = [
  ["one a day", () => 1 / 24],
  ["one in three hours", () => 1 / 3],
  ["two an hour", () => 2],
  ["ten an hour", () => 10],
  ["thirty an hour", () => 30],
  ["three hundred an hour", () => 300],
  ["ten thousand an hour", () => 10_000],
  ["forty an hour in the office", (hour) => (isOffice(hour) ? 40 : 0)],
  ["four hundred an hour in the office, some beside", (hour) => (isOffice(hour) ? 400 : 3)],
  ["day and night", (hour) => 200 * (1.2 + Math.sin((hour / DAY) * 2 * Math.PI))],
  ["growing by a tenth a month", (hour) => 100 * 1.1 ** (hour / (30 * DAY))],
];

test("a year of normal noise gives hardly an alarm", () => {
  const random = seededRandom("a year of noise");
  const rates: string[] = [];
  let alarms = 0;
  for (const [name, mean] of NORMAL) {
    for (const [kind, draw] of [
      ["chance", poisson],
      ["varied", varied],
    ] as const) {
      const news = told(
        seriesOf(YEAR, (hour) => draw(random, mean(hour))),
        0,
        YEAR,
      );
      alarms += news.length;
      rates.push(`${name}, ${kind}: ${news.length} ${[...new Set(news.map((item) => item.kind))].join(" ")}`);
    }
  }
  process.stdout.write(
    `alarms in a year of normal noise:\n  ${rates.join("\n  ")}\n  together ${alarms} of ${rates.length} years\n`,
  );
  // about five are seen, one in four years of a type, never more than ten; one in each is a broken rule, not bad luck
  expect(alarms).toBeLessThan(rates.length);
}, 60_000);

/** Hours from the break until it was told. */
function hoursUntil(kinds: readonly Verdict["kind"][], series: Series, from: number, within: number): number {
  for (let hour = from; hour < from + within; hour += 1) {
    const verdict = judgeHour(START + hour, series);
    if (verdict && kinds.includes(verdict.kind)) return hour - from + 1;
  }
  throw new Error(`not told within ${within} hours`);
}

/** A Wednesday at ten, after ten weeks. */
const BREAK = 10 * WEEK + 2 * DAY + 10;

test.each([
  ["three hundred an hour", () => 300, 2],
  ["thirty an hour", () => 30, 5],
  ["two an hour", () => 2, 24],
  ["one in three hours", () => 1 / 3, 5 * DAY],
  ["forty an hour in the office", (hour: number) => (isOffice(hour) ? 40 : 0), 5],
] as const)("a drop to nothing of %s is told once, and its end is seen", (_, mean, most) => {
  const random = seededRandom("a drop to nothing");
  const series = seriesOf(12 * WEEK, (hour) =>
    hour >= BREAK && hour < BREAK + WEEK ? 0 : poisson(random, mean(hour)),
  );
  expect(hoursUntil(["silent"], series, BREAK, 5 * DAY)).toBeLessThanOrEqual(most);
  const news = told(series, BREAK, BREAK + WEEK).filter(({ kind }) => kind === "silent");
  expect(news).toHaveLength(1);
  // it was silent before where none had come for hours
  expect(news[0]!.since - START).toBeLessThanOrEqual(BREAK);
  expect(news[0]!.received).toBe(0);
  expect(news[0]!.band.low).toBeGreaterThan(0);
  const back = told(series, BREAK, BREAK + WEEK + DAY).at(-1)!;
  expect(back.since - START).toBeLessThanOrEqual(BREAK);
});

test.each([
  ["ten an hour", () => 10],
  ["three hundred an hour", () => 300],
  ["forty an hour in the office", (hour: number) => (isOffice(hour) ? 40 : 0)],
  ["day and night", (hour: number) => 200 * (1.5 + Math.sin((hour / DAY) * 2 * Math.PI))],
] as const)("a tripling, and a drop to a fifth, of %s are told within a day", (_, mean) => {
  const random = seededRandom("a tripling");
  for (const [factor, kind] of [
    [3, "high"],
    [0.2, "low"],
  ] as const) {
    // of forty, chance may nearly make a fifth
    if (factor < 1 && mean(BREAK) < 100) continue;
    const series = seriesOf(12 * WEEK, (hour) => varied(random, mean(hour) * (hour >= BREAK ? factor : 1)));
    expect(hoursUntil([kind], series, BREAK, DAY)).toBeLessThanOrEqual(DAY);
  }
});

test("counts of a few never cry wolf, whatever they were before", () => {
  for (const usual of [0, 1, 2, 3, 4, 5]) {
    for (const now of [0, 1, 2, 3, 4, 5]) {
      const series = seriesOf(
        12 * WEEK,
        (hour) => (hour === BREAK - 5 ? now : usual) || (hour === 0 ? 1 : 0),
      );
      expect(judgeHour(START + BREAK - 5, series), `${now} where ${usual} is usual`).toBeUndefined();
    }
  }
});

test("weekends, holidays in the past, and clocks that are changed are usual", () => {
  const random = seededRandom("the calendar");
  const holiday = 6 * WEEK + DAY;
  const series = seriesOf(30 * WEEK, (hour) => {
    if (hour >= holiday && hour < holiday + DAY) return 0;
    // clocks go forward in week 13, and back in week 25
    const east = hour >= 13 * WEEK && hour < 25 * WEEK ? 2 : 1;
    return poisson(random, isOffice(hour, east) ? 100 : 0);
  });
  const news = told(series, 0, 30 * WEEK);
  // the holiday itself, from the end of the working day before
  expect(news.map(({ kind, since }) => [kind, since - START])).toEqual([["silent", holiday - 7]]);
});

test("what is done on the first of each month is told the first times, and then it is usual", () => {
  const random = seededRandom("the first of the month");
  const series = seriesOf(YEAR, (hour) => {
    const date = new Date((START + hour) * 3_600_000);
    if (hour < DAY) return 0;
    if (date.getUTCDate() === 1 && date.getUTCHours() === 3) return poisson(random, 5000);
    return poisson(random, 2);
  });
  const news = told(series, 0, YEAR).filter(({ received }) => received > 1000);
  expect(news.map(({ kind, since }) => [kind, new Date(since * 3_600_000).toISOString()])).toEqual([
    ["high", "2024-02-01T03:00:00.000Z"],
  ]);
});

test("a new type says nothing for a week, a weekend in its first weeks is no silence, a flood then is told", () => {
  const random = seededRandom("a new type");
  const flood = 15 * DAY + 10;
  const series = seriesOf(4 * WEEK, (hour) =>
    poisson(random, hour === flood ? 2000 : hour === 4 * DAY + 10 ? 5000 : isOffice(hour) ? 100 : 0),
  );
  expect(told(series, 0, 4 * WEEK).map(({ since }) => since - START)).toEqual([flood]);
});

test("a type that was given up for ever is told once", () => {
  const random = seededRandom("given up");
  for (const mean of [1 / 3, 3, 300]) {
    const series = seriesOf(BREAK, () => varied(random, mean));
    const news = told(series, BREAK, BREAK + 30 * WEEK);
    expect(news.map(({ kind }) => kind)).toEqual(["silent"]);
  }
});

test("a week that was unusual itself does not make the next ones so", () => {
  const random = seededRandom("an unusual week");
  const series = seriesOf(30 * WEEK, (hour) => {
    const week = Math.floor(hour / WEEK);
    return poisson(random, week === 10 ? 0 : week === 14 ? 1000 : 100);
  });
  const weeks = told(series, 0, 30 * WEEK).map(({ since }) => Math.floor((since - START) / WEEK));
  expect([...new Set(weeks)]).toEqual([10, 14]);
});
