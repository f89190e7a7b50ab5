// What arrived in one turn of the event loop goes on together: many deliveries through one step cost less than one through many.

let arrived: (() => void)[] = [];

/** Goes on when all that is there to be read has been read: at the end of this turn, so nobody waits for somebody to come. */
export function atEndOfTurn(goOn: () => void): void {
  if (arrived.length === 0) setImmediate(goOnTogether);
  arrived.push(goOn);
}

function goOnTogether(): void {
  const all = arrived;
  arrived = [];
  for (const goOn of all) goOn();
}
