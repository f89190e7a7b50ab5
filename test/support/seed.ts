// Randomness that can be had again: the seed is printed, and UKEMI_TEST_SEED repeats it.

/** A source of random numbers. */
export interface Random {
  readonly seed: number;
  /** A whole number from 0 up to, and not including, the bound. */
  below(bound: number): number;
}

/** Starts from UKEMI_TEST_SEED or a new seed, and prints which. */
export function seededRandom(what: string): Random {
  const seed = Number(process.env.UKEMI_TEST_SEED ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`${what}: UKEMI_TEST_SEED=${seed}`);
  let state = seed;
  return {
    seed,
    // mulberry32
    below(bound) {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
    },
  };
}
