// What must not be left behind, however the bench ends: processes, servers and their folders.

const endings = new Set<() => Promise<void>>();
let isEnding = false;

/** Remembers how something ends. The answer ends it, and does so once, however often and by whom it is called. */
export function ending(end: () => Promise<void>): () => Promise<void> {
  let ended: Promise<void> | undefined;
  const once = () => (ended ??= end().finally(() => endings.delete(once)));
  endings.add(once);
  return once;
}

/** True once somebody has asked the whole bench to end: what fails from then on says nothing. */
export function isOver(): boolean {
  return isEnding;
}

/** Lets Ctrl-C, and whoever asks politely, end everything before this process ends. */
export function endOnSignals(): void {
  for (const [signal, status] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.on(signal, () => {
      if (isEnding) return;
      isEnding = true;
      process.stderr.write(`\n${signal}: everything is being stopped …\n`);
      void endEverything().then(() => process.exit(status));
    });
  }
}

/** The youngest first: what it stands on ends after it. */
async function endEverything(): Promise<void> {
  for (const end of [...endings].toReversed()) await end().catch((error: unknown) => console.error(error));
}
