// How many bytes of bodies may be in memory at once, being read or waiting for their commit.

export interface ByteBudget {
  /** Takes the bytes if there is room; one body alone always has room. */
  take(bytes: number): boolean;
  release(bytes: number): void;
}

/** Makes a budget that is empty. */
export function createByteBudget(bytesMax: number): ByteBudget {
  let taken = 0;
  return {
    take(bytes) {
      if (taken > 0 && taken + bytes > bytesMax) return false;
      taken += bytes;
      return true;
    },
    release: (bytes) => void (taken -= bytes),
  };
}
