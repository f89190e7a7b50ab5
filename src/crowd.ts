// Those who are here, in the order they came.
//
// A Set would do the same, but not where thousands come and go in a second. It is rebuilt after every few of them, and each
// table holds on to the one that took its place: as soon as one of them has grown old, all that follow do, with everyone who
// was in them, until the next full collection. Here, whoever leaves takes nobody along.

/** Where one stands. */
export interface Place<T> {
  readonly item: T;
  /** Neither where it has left. */
  before: Place<T> | undefined;
  after: Place<T> | undefined;
  isHere: boolean;
}

export interface Crowd<T> {
  enter(item: T): Place<T>;
  /** True the first time. */
  leave(place: Place<T>): boolean;
  size(): number;
  /** Who has been here longest. */
  first(): T | undefined;
}

/** Nobody is here. */
export function createCrowd<T>(): Crowd<T> {
  let first: Place<T> | undefined;
  let last: Place<T> | undefined;
  let size = 0;
  return {
    enter(item) {
      const place: Place<T> = { item, before: last, after: undefined, isHere: true };
      if (last) last.after = place;
      else first = place;
      last = place;
      size += 1;
      return place;
    },
    leave(place) {
      if (!place.isHere) return false;
      const { before, after } = place;
      if (before) before.after = after;
      else first = after;
      if (after) after.before = before;
      else last = before;
      place.isHere = false;
      place.before = place.after = undefined;
      size -= 1;
      return true;
    },
    size: () => size,
    first: () => first?.item,
  };
}
