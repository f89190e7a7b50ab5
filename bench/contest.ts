// A contest: every contestant runs once in each round, in an order that changes, so that what else the machine does falls
// on all of them. A ratio is taken within a round; the median of the rounds counts.

/** One who runs for a short time and says how it went: a rate, or milliseconds. */
export interface Contestant {
  readonly name: string;
  run(): Promise<number>;
}

/** What each contestant came to in each round, by name. */
export type Rounds = ReadonlyMap<string, readonly number[]>;

/** A figure with its quartiles. */
export interface Spread {
  readonly low: number;
  readonly median: number;
  readonly high: number;
}

export interface ContestOptions {
  readonly rounds: number;
  /** Told before each run. */
  readonly onRun?: (run: { readonly done: number; readonly total: number; readonly name: string }) => void;
}

/** Runs the rounds. A contestant that fails ends the contest: half a table would be read as a whole one. */
export async function runContest(
  contestants: readonly Contestant[],
  { rounds, onRun = () => {} }: ContestOptions,
): Promise<Rounds> {
  const figures = new Map(contestants.map(({ name }) => [name, [] as number[]]));
  const total = rounds * contestants.length;
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, { name, run }] of inTurn(contestants, round).entries()) {
      onRun({ done: round * contestants.length + index, total, name });
      figures.get(name)!.push(await run());
    }
  }
  return figures;
}

/** Every other round goes backwards, and every two rounds begin with the next one: two take turns in being first, too. */
export function inTurn<T>(items: readonly T[], round: number): T[] {
  const from = Math.floor(round / 2) % Math.max(1, items.length);
  const turned = [...items.slice(from), ...items.slice(0, from)];
  return round % 2 === 0 ? turned : turned.toReversed();
}

/** How many times as much one is as the other, in the rounds that both have run. */
export function ratioOf(rounds: Rounds, name: string, other: string): Spread {
  const [own, others] = [figuresOf(rounds, name), figuresOf(rounds, other)];
  return spreadOf(own.map((figure, round) => figure / others[round]!));
}

/** What a contestant came to. */
export function figureOf(rounds: Rounds, name: string): Spread {
  return spreadOf(figuresOf(rounds, name));
}

function figuresOf(rounds: Rounds, name: string): readonly number[] {
  const figures = rounds.get(name);
  if (!figures) throw new Error(`nobody named ${name} took part`);
  return figures;
}

/** The median and the quartiles. */
export function spreadOf(figures: readonly number[]): Spread {
  if (figures.length === 0) throw new Error("there are no figures");
  const sorted = figures.toSorted((a, b) => a - b);
  const at = (share: number) => {
    const place = share * (sorted.length - 1);
    const below = Math.floor(place);
    const above = Math.ceil(place);
    return sorted[below]! + (sorted[above]! - sorted[below]!) * (place - below);
  };
  return { low: at(0.25), median: at(0.5), high: at(0.75) };
}
