// "Did you mean …?" for names that people mistype.

/** A sentence that names the nearest of the known names, or nothing where none is near. */
export function suggest(given: string, known: readonly string[]): string {
  const near = known
    .map((name) => ({ name, distance: distanceOf(given.toLowerCase(), name.toLowerCase()) }))
    .toSorted((left, right) => left.distance - right.distance)[0];
  const isNear = near !== undefined && near.distance <= Math.max(1, Math.floor(given.length * 0.4));
  return isNear ? ` Did you mean ${near.name}?` : "";
}

/** How many letters must be added, taken away, changed or swapped with the next. */
function distanceOf(left: string, right: string): number {
  const rows: number[][] = [Array.from({ length: right.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= left.length; i++) {
    const row = [i];
    for (let j = 1; j <= right.length; j++) {
      const same = left[i - 1] === right[j - 1];
      let least = Math.min(row[j - 1]! + 1, rows[i - 1]![j]! + 1, rows[i - 1]![j - 1]! + (same ? 0 : 1));
      const isSwap = i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      if (isSwap) least = Math.min(least, rows[i - 2]![j - 2]! + 1);
      row.push(least);
    }
    rows.push(row);
  }
  return rows[left.length]![right.length]!;
}
