// The name that was probably meant, for messages about names that do not exist.

/** Further away than this part of the name's length, nothing is suggested. */
const FAR = 0.4;

/** The nearest of the names; undefined where none is near. Case, dashes and underscores do not count. */
export function nearest(word: string, names: readonly string[]): string | undefined {
  const plain = plainly(word);
  if (plain === "") return undefined;
  const ranked = names
    .map((name) => ({ name, distance: distanceOf(plain, plainly(name)) }))
    .filter(({ name, distance }) => distance <= Math.max(1, Math.floor(plainly(name).length * FAR)))
    .toSorted((left, right) => left.distance - right.distance);
  return ranked[0]?.name;
}

/** ": did you mean …?", or a full stop where nothing is near: the end of every such message. */
export function didYouMean(word: string, names: readonly string[]): string {
  const name = nearest(word, names);
  return name === undefined ? "." : `: did you mean ${name}?`;
}

function plainly(word: string): string {
  return word.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}

/** How many letters are to be added, taken away, changed or swapped with their neighbour. */
function distanceOf(left: string, right: string): number {
  let before: number[] = [];
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i++) {
    const next = [i];
    for (let j = 1; j <= right.length; j++) {
      const same = left[i - 1] === right[j - 1];
      let least = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      if (swapped) least = Math.min(least, before[j - 2]! + 1);
      next.push(least);
    }
    before = row;
    row = next;
  }
  return row[right.length]!;
}
