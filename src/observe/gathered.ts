// Figures are gathered as plain numbers, and given to prom-client many at a time: one by one they cost as much as the log line.

/** So many are held at the most. */
const HELD_MAX = 512;

/** Figures of one metric under one set of labels. */
export interface Gathered {
  add(value: number): void;
  /** Gives away what is held: nobody may read the metric before that. */
  handOver(): void;
}

/** For a histogram, which wants to see every value. */
export function gatherValues(observe: (value: number) => void): Gathered {
  let held: number[] = [];
  function handOver(): void {
    const values = held;
    held = [];
    for (const value of values) observe(value);
  }
  return {
    add(value) {
      if (held.push(value) === HELD_MAX) handOver();
    },
    handOver,
  };
}

/** For a counter, which wants to know their sum. */
export function gatherCount(increase: (by: number) => void): Gathered {
  let sum = 0;
  return {
    add: (value) => void (sum += value),
    handOver() {
      if (sum > 0) increase(sum);
      sum = 0;
    },
  };
}

/** Makes what is missing, once for each name. */
export function byName<T>(make: (name: string) => T): { of(name: string): T; all(): Iterable<T> } {
  const made = new Map<string, T>();
  return {
    of(name) {
      const known = made.get(name);
      if (known !== undefined) return known;
      const fresh = make(name);
      made.set(name, fresh);
      return fresh;
    },
    all: () => made.values(),
  };
}
